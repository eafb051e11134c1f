/** A scene with a Stack, a Git server, a forge that stands in for a real one, and the controllers of pull request previews and of reports. */
import type { PullRequest } from "@pko/forge";
import { standInForge, type RecordedCall, type StandInForge, type StandInStatus } from "@pko/forge/testing";
import type { ApprovalRequest, PullRequestPreview, Stack, StackSpec } from "@pko/api";
import { builtin, type Controller } from "@pko/kube";
import {
  githubAppTokens,
  pullRequestController,
  pushes,
  referencePoller,
  reportController,
  type Pushes,
} from "@pko/operator";

import type { Operator, OperatorParts } from "../harness/operator.ts";
import { gitServer, type GitServer } from "../stack/git-server.ts";
import { condition, reasonOf, stackWiring, StackScene } from "../stack/scene.ts";

const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1"] };

export interface Review {
  readonly scene: StackScene;
  readonly forge: StandInForge;
  readonly server: GitServer;
  readonly operator: Operator;
  readonly webhooks: Pushes;
  /** The first commit of the branch main. */
  readonly first: string;
  /** The spec of a Stack that follows main, and previews pull requests. */
  readonly spec: (changes?: StackSpec["pullRequests"]) => Partial<StackSpec>;
}

export async function openReview(): Promise<Review> {
  const scene = await StackScene.open("without operator");
  const [forge, server, webhooks] = [standInForge("Gitea"), gitServer(), pushes()];
  scene.defer(() => forge[Symbol.dispose]());
  scene.defer(() => server[Symbol.dispose]());
  const first = server.commit();
  const metadata = scene.ref("forge");
  const secret = { apiVersion: "v1", kind: "Secret", metadata, stringData: { token: forge.token } };
  await scene.client.apply(builtin.secrets, secret, { fieldManager: "test" });
  const { type, url, repository } = forge;
  return {
    scene,
    forge,
    server,
    webhooks,
    first,
    operator: startOperator(scene, webhooks),
    spec: (changes) => ({
      projectRepo: server.url,
      branch: "main",
      pullRequests: { type, url, repository, secretRef: { name: "forge" }, ...changes },
    }),
  };
}

function startOperator(scene: StackScene, webhooks: Pushes): Operator {
  const { namespace, clock } = scene;
  return scene.startOperator({ clock }, (parts) => {
    const { controllers } = stackWiring(namespace, { git: { policy }, pushes: webhooks })(parts);
    return { controllers: [...controllers, ...reviewControllers(scene, parts, webhooks)] };
  });
}

/** Of pull request previews, and of reports. */
export function reviewControllers(scene: StackScene, parts: OperatorParts, webhooks: Pushes): Controller[] {
  const { stacks, updates } = parts.stores;
  const githubApps = githubAppTokens({ policy });
  const references = referencePoller({ client: parts.client, clock: parts.clock });
  scene.defer(() => references.stop());
  const shared = { ...parts, references, githubApps };
  return [
    pullRequestController({ ...shared, reflector: stacks, updates, git: { policy, githubApps }, pushes: webhooks }),
    reportController({ ...shared, stacks, updates, workspaceClasses: undefined, http: { policy } }),
  ];
}

export const pullRequest = (number: number, commit: string, changes: Partial<PullRequest> = {}): PullRequest => ({
  number,
  title: `Change ${number}`,
  url: `https://git.example.com/acme/web/pulls/${number}`,
  head: { ref: `feature-${number}`, commit },
  base: { ref: "main" },
  labels: [],
  isFork: false,
  isDraft: false,
  ...changes,
});

/** `7 Succeeded` for each preview. */
export const shownIn = ({ status }: Stack): string =>
  (status?.pullRequests ?? []).map(({ number, state }: PullRequestPreview) => `${number} ${state}`).join(", ");

export const isShown =
  (text: string) =>
  (stack: Stack): boolean =>
    shownIn(stack) === text;

/** A plan waits for an approval, which is not the `former` one. */
export async function isAwaiting(scene: StackScene, former?: ApprovalRequest): Promise<ApprovalRequest> {
  const { status } = await scene.becomes(
    "web",
    "awaiting an approval",
    (stack) => reasonOf(stack) === "AwaitingApproval" && stack.status?.approval?.updateName !== former?.updateName,
  );
  if (!status?.approval) throw new Error("there is no request");
  return status.approval;
}

export const previewed = (stack: Stack) => condition(stack, "PullRequestsPreviewed");

interface Recorded {
  /** Of commits. */
  readonly names: ReadonlyMap<string, string>;
  /** The status of the merged commit while its plan waits for an approval. */
  readonly planned: StandInStatus;
}

/** The calls that decide what people see at the forge, without what differs between two runs of the test. */
export function recordedCalls({ calls, statuses }: StandInForge, { names, planned }: Recorded): string {
  const comments = calls.filter(({ path, method }) => path.includes("/comments") && method !== "GET");
  const last = new Map(statuses.map((status) => [status.commit, status]));
  const recorded = {
    lists: [
      ...new Set(calls.filter(({ path }) => path.includes("/pulls?")).map(({ method, path }) => `${method} ${path}`)),
    ],
    firstComment: withoutCredentials(comments[0]),
    lastComment: withoutCredentials(comments.at(-1)),
    awaitingApproval: planned,
    lastStatuses: [...names.keys()].map((commit) => last.get(commit)),
  };
  const text = JSON.stringify(recorded, undefined, 2)
    .replaceAll(/pulumi:[0-9a-f]{32}/g, "MARKER")
    .replaceAll(/(-pr-\d+)-[0-9a-f]{12}/g, "$1-HASH")
    .replaceAll(/pulumi\/[^/"]+\/web/g, "pulumi/NAMESPACE/web");
  const short = [...names].map(([commit, name]) => [commit.slice(0, 10), name] as const);
  return [...names, ...short].reduce((result, [value, name]) => result.replaceAll(value, name), `${text}\n`);
}

const withoutCredentials = (call: RecordedCall | undefined) => {
  const { authorization: _, ...rest } = call ?? { authorization: null };
  return rest;
};
