/** A scene with Stacks that report to a stand-in for a forge. */
import { pullRequestAnnotation, updateRecordKind, type ReportSettings, type Update } from "@pko/api";
import type { ForgeType } from "@pko/forge";
import { standInForge, type StandInForge } from "@pko/forge/testing";
import { builtin } from "@pko/kube";
import { githubAppTokens, referencePoller, reportController, stacks, updateRecords, updates } from "@pko/operator";
import { encodeContent, emptyContent, type RunEvent } from "@pko/records";
import { waitFor } from "@pko/testkit";

import type { Operator } from "../harness/operator.ts";
import { stackWiring, StackScene } from "../stack/scene.ts";

const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1"] };

export interface ReportScene extends AsyncDisposable {
  readonly scene: StackScene;
  readonly forge: StandInForge;
  readonly settings: ReportSettings;
}

export async function openReportScene(type: ForgeType = "GitHub"): Promise<ReportScene> {
  const scene = await StackScene.open("without operator");
  const forge = standInForge(type);
  scene.defer(() => forge[Symbol.dispose]());
  const { url, repository } = forge;
  await putSecret(scene, forge.token);
  return {
    scene,
    forge,
    settings: { type, url, repository, secretRef: { name: "forge" } },
    [Symbol.asyncDispose]: () => scene[Symbol.asyncDispose](),
  };
}

interface StartOptions {
  readonly classes?: boolean;
  /** Without the Stack controller, which another operator has. */
  readonly isAlone?: boolean;
}

/** An operator with the Stack controller and the report controller. */
export async function startOperator(scene: StackScene, options: StartOptions = {}): Promise<Operator> {
  const { classes = false, isAlone = false } = options;
  const { namespace, clock } = scene;
  const { client } = scene.rights;
  const references = referencePoller({ client, clock });
  const operator = scene.startOperator({ clock }, (parts) => {
    const { controllers } = isAlone ? { controllers: [] } : stackWiring(namespace, { classes })(parts);
    const control = reportController({
      ...parts,
      updates: parts.stores.updates,
      stacks: parts.stores.stacks,
      workspaceClasses: classes ? parts.stores.workspaceClasses : undefined,
      references,
      githubApps: githubAppTokens({ policy }),
      http: { policy },
    });
    return { controllers: [...controllers, control] };
  });
  scene.defer(() => references.stop());
  await operator.synced;
  return operator;
}

export async function putSecret(scene: StackScene, token: string): Promise<void> {
  await putSecretValues(scene, { token });
}

/** Replaces all values of the Secret. */
export async function putSecretValues(scene: StackScene, values: Readonly<Record<string, string>>): Promise<void> {
  const data = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, btoa(value)]));
  const object = { apiVersion: "v1", kind: "Secret", metadata: scene.ref("forge"), data };
  await scene.client.apply(builtin.secrets, object, { fieldManager: "test" });
}

/** The Stack previews a pull request. */
export async function previewStack(
  { scene, settings }: Pick<ReportScene, "scene" | "settings">,
  {
    url,
    pullRequest,
    branch = "main",
  }: { readonly url: string; readonly pullRequest: number; readonly branch?: string },
): Promise<void> {
  await scene.client.create(stacks, {
    apiVersion: stacks.apiVersion,
    kind: stacks.kind,
    metadata: { ...scene.ref("preview"), annotations: { [pullRequestAnnotation]: String(pullRequest) } },
    spec: { stack: "dev", projectRepo: url, branch, preview: true, report: settings },
  });
}

/** An Update of the commit whose report satisfies the predicate. A change of the spec causes another Update of the same commit. */
export async function updateUntil(
  scene: StackScene,
  commit: string,
  is: (update: Update) => boolean = () => true,
): Promise<Update> {
  let last: Update | undefined;
  const find = async (): Promise<Update | undefined> => {
    const { items } = await scene.client.list(updates, { namespace: scene.namespace });
    const found = items.filter(({ metadata }) => metadata.annotations?.["pulumi.com/trigger"]?.includes(commit));
    last = found.find(is) ?? found[0];
    return found.find(is);
  };
  try {
    return await waitFor(find, { timeoutMs: 60_000, what: `the Update of ${commit}` });
  } catch (error) {
    throw new Error(`the report is ${JSON.stringify(last?.status?.report)}`, { cause: error });
  }
}

/** What the Update controller stores at the end of a run. */
export async function storeRecord(scene: StackScene, update: Update, events: readonly RunEvent[]): Promise<void> {
  const { name = "", uid = "" } = update.metadata;
  const time = new Date().toISOString();
  const content = await encodeContent({
    ...emptyContent,
    events: events.map((event, index) => ({ seq: index + 1, time, event })),
  });
  await scene.client.create(updateRecords, {
    apiVersion: updateRecordKind.apiVersion,
    kind: updateRecordKind.kind,
    metadata: scene.ref(name),
    record: {
      updateName: name,
      updateUid: uid,
      pulumiStack: "dev",
      type: "preview",
      result: "succeeded",
      startTime: time,
      endTime: time,
      content,
    },
  });
}

/** Of the reports so far, by result. */
export function counted({ metrics }: Operator): Record<string, number> {
  const lines = metrics.expose().matchAll(/^report_requests_total\{result="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, result = "", count]) => [result, Number(count)]));
}
