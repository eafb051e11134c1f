/** The steps that read what the rules need next. Secrets are never watched: those that a Workspace refers to are read by name. */
import { secretOutputsAnnotation, type Program, type Workspace } from "@pko/api";
import { builtin, refKey, type ApiObject, type Client, type Store } from "@pko/kube";
import type { Certificate } from "@pko/rpc/pki";
import type { ConfigMap, Secret } from "kubernetes-types/core/v1";

import type { OperatorCa } from "../../agents/agents.ts";
import { versionOf } from "../../inputs/reference-poller.ts";
import { certificateNameOf } from "../names.ts";
import { buildInputs, draftPod } from "../pod/build-inputs.ts";
import { certificateIn } from "../pod/build-objects.ts";
import type { Reading } from "../pod/references.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { Step } from "../steps.ts";
import type { WorkspaceContext, WorkspacePerformed, Writer } from "./owned.ts";

interface InputReader extends Writer {
  readonly programs: Store<Program>;
  readonly settings: WorkspaceSettings;
  /** Whether a pod with this image could not start in this namespace, because it has no shell. */
  readonly hasNoShell: (namespace: string, image: string) => boolean;
}

export async function readInputs(
  { client, programs, settings, hasNoShell }: InputReader,
  { spec: normal }: Extract<Step, { kind: "readInputs" }>,
  { view, signal }: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const { source, namespace } = normal;
  const { workspace, workspaceClass } = view;
  const applied = workspaceClass.kind === "one" ? { applied: workspaceClass } : {};
  const draft = draftPod({ workspace, normal, settings, ...applied });
  const readings = await readObjects({ client, namespace, signal }, draft.objects);
  const program = source.kind === "program" ? programs.get(refKey({ namespace, name: source.name })) : undefined;
  const inputs = buildInputs(draft, {
    readings,
    ...(program && { program }),
    ...(view.statefulSet && { builtHash: view.statefulSet.builtHash }),
    withoutShell: { recorded: view.statefulSet?.imageWithoutShell, shown: view.pod?.imageWithoutShell },
    failsElsewhere: (image) => hasNoShell(namespace, image),
  });
  return { kind: "replan", facts: { inputs } };
}

export async function assessCertificate(
  { client, ca }: Writer & { readonly ca: Pick<OperatorCa, "assess"> },
  { view, signal }: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const known = view.knownCertificate ?? (await readCertificate({ client, signal }, view.workspace));
  const certificate = await ca.assess(known);
  return { kind: "replan", facts: { certificate, ...(known && { knownCertificate: known }) } };
}

interface Reader {
  readonly client: Client;
  readonly namespace: string;
  readonly signal: AbortSignal;
}

async function readObjects(
  { client, namespace, signal }: Reader,
  objects: readonly Pick<Reading, "kind" | "name">[],
): Promise<Reading[]> {
  return await Promise.all(
    objects.map(async ({ kind, name }): Promise<Reading> => {
      const ref = { namespace, name };
      if (kind === "Secret") {
        const secret = await client.find(builtin.secrets, ref, { signal });
        return { kind, name, version: versionOf(secret), ...(secret && { found: secretContent(secret) }) };
      }
      const configMap = await client.find(builtin.configMaps, ref, { signal });
      return { kind, name, version: versionOf(configMap), ...(configMap && { found: configMapContent(configMap) }) };
    }),
  );
}

type Content = NonNullable<Reading["found"]>;

function secretContent(secret: ApiObject<Secret>): Content {
  const data = Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]);
  const secretKeys = secretKeysIn(secret);
  return {
    uid: secret.metadata.uid ?? "",
    data: Object.fromEntries(data) as Record<string, string>,
    ...(secretKeys && { secretKeys }),
  };
}

function secretKeysIn({ metadata }: ApiObject<Secret>): string[] | undefined {
  try {
    const keys: unknown = JSON.parse(metadata.annotations?.[secretOutputsAnnotation] ?? "");
    return Array.isArray(keys) ? keys.map(String) : undefined;
  } catch {
    return undefined;
  }
}

function configMapContent(configMap: ApiObject<ConfigMap>): Content {
  return { uid: configMap.metadata.uid ?? "", data: { ...configMap.binaryData, ...configMap.data } };
}

/** Undefined if there is none, or its Secret is incomplete. */
async function readCertificate(
  { client, signal }: Omit<Reader, "namespace">,
  { metadata }: Workspace,
): Promise<Certificate | undefined> {
  const { name = "", namespace = "" } = metadata;
  const secret = await client.find(builtin.secrets, { namespace, name: certificateNameOf(name) }, { signal });
  return secret && certificateIn(secret);
}
