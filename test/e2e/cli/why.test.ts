/** `why` names the cause of Stacks that are broken on the cluster. All are created at once, and most need no pod. */
import type { Stack } from "@pko/api";
import { waitFor } from "@pko/testkit";
import { beforeAll, describe, expect, test } from "bun:test";

import {
  applyTo,
  at,
  CliUser,
  fromSecret,
  hasReason,
  isReady,
  kubectl,
  literal,
  newConfigMap,
  newProgram,
  newSecret,
  newStack,
  podWith,
  readyMessage,
  stackUntil,
  useScene,
  yamlProject,
} from "../harness.ts";
import { pictureSize, updatePicture } from "./pictures.ts";

const slow = 600_000;
const scene = useScene("why", {
  secondNamespace: "why-leaving",
  git: {
    intercept: ({ url }) => (url.includes("/private.git/") ? new Response("denied", { status: 401 }) : undefined),
  },
  // Stacks that are broken on purpose.
  operator: { forbidden: [/no-account/, /no-priority/, /exceeded quota/, /because it is being terminated/] },
});
const cli = new CliUser(() => scene);
const secondCli = new CliUser(() => scene.second);

/** What `why` is expected to say about a Stack. */
interface Situation {
  readonly title: string;
  /** The repository of the program. */
  readonly repository?: string;
  readonly spec: object;
  /** Besides the Stack. */
  readonly objects?: readonly object[];
  /** The reason with which the operator reports it; "Ready" for a Stack that is up to date. */
  readonly reason: string;
  readonly cause: string;
  /** Part of what the operator, Kubernetes or Pulumi reports. */
  readonly message: RegExp;
  /** The first step to take. */
  readonly next: RegExp | undefined;
  readonly path?: readonly string[];
}

const program = { programRef: { name: "fine" } };
const pod = (spec: object): object => {
  const template = podWith({});
  const podTemplate = { spec: { ...template.spec.podTemplate.spec, ...spec } };
  return { workspaceTemplate: { spec: { ...template.spec, podTemplate } } };
};
const needs = (...names: readonly string[]): object => ({ prerequisites: names.map((name) => ({ name })) });
/** An hour a year, which is over or has not begun when the tests run. */
const closedWindow = { schedule: `0 0 1 ${((new Date().getUTCMonth() + 6) % 12) + 1} *`, durationSeconds: 3600 };

const crashing = { name: "broken", image: "docker.io/library/busybox:latest", command: ["false"] };

const createInput = /Create the object, or add the key, that the message names/;
const createSource = /Create the object that the message names/;
const checkSource = /Check the address, the revision and the credentials/;

const situations = {
  fine: {
    title: "nothing",
    spec: program,
    objects: [newProgram("fine", { outputs: { text: "hello" } })],
    reason: "Ready",
    cause: "upToDate",
    message: /succeeded/,
    next: undefined,
  },
  "git-credentials": {
    title: "a Git server that rejects the credentials",
    repository: "private",
    spec: { gitAuth: { accessToken: fromSecret("git", "token") } },
    objects: [newSecret("git", { token: "expired" })],
    reason: "SourceUnavailable",
    cause: "sourceUnavailable",
    message: /rejects the credentials/,
    next: checkSource,
  },
  "git-secret": {
    title: "a Secret with Git credentials that does not exist",
    repository: "site",
    spec: { gitAuth: { accessToken: fromSecret("no-git", "token") } },
    reason: "SourceUnavailable",
    cause: "inputMissing",
    message: /there is no Secret no-git, which Git authentication needs/,
    next: createInput,
  },
  branch: {
    title: "a branch that does not exist",
    repository: "site",
    spec: { branch: "no-branch" },
    reason: "SourceUnavailable",
    cause: "sourceUnavailable",
    message: /no-branch/,
    next: checkSource,
  },
  "config-secret": {
    title: "a Secret of the configuration that does not exist",
    spec: { ...program, secretsRef: { "fine:password": fromSecret("no-config", "password") } },
    reason: "SpecInvalid",
    cause: "inputMissing",
    message: /there is no Secret no-config, which the configuration value fine:password needs/,
    next: createInput,
  },
  network: {
    title: "a Secret of a variable that does not exist",
    spec: { ...program, envRefs: { AWS_SECRET_ACCESS_KEY: fromSecret("aws", "key") } },
    reason: "SpecInvalid",
    cause: "inputMissing",
    message: /there is no Secret aws, which the variable AWS_SECRET_ACCESS_KEY needs/,
    next: createInput,
  },
  token: {
    title: "an access token that does not exist",
    spec: { ...program, accessTokenSecret: "no-token" },
    reason: "SpecInvalid",
    cause: "inputMissing",
    message: /there is no Secret no-token, which the variable PULUMI_ACCESS_TOKEN needs/,
    next: createInput,
  },
  "config-map": {
    title: "a ConfigMap that does not exist",
    spec: { ...program, configRef: { "fine:size": { name: "no-sizes", key: "size" } } },
    reason: "SpecInvalid",
    cause: "inputMissing",
    message: /there is no ConfigMap no-sizes, which the configuration value fine:size needs/,
    next: createInput,
  },
  key: {
    title: "a ConfigMap without the key",
    spec: { ...program, configRef: { "fine:size": { name: "sizes", key: "huge" } } },
    objects: [newConfigMap("sizes", { small: "1" })],
    reason: "SpecInvalid",
    cause: "inputMissing",
    message: /the ConfigMap sizes has no key huge/,
    next: createInput,
  },
  "no-program": {
    title: "a Program that does not exist",
    spec: { programRef: { name: "nowhere" } },
    reason: "SourceUnavailable",
    cause: "sourceUnavailable",
    message: /there is no Program nowhere/,
    next: createSource,
  },
  flux: {
    title: "a Flux source whose kind the cluster does not serve",
    spec: { fluxSource: { sourceRef: { apiVersion: "artifacts.example.com/v1", kind: "Artifact", name: "site" } } },
    reason: "SourceUnavailable",
    cause: "sourceUnavailable",
    message: /the cluster serves no Artifact of artifacts\.example\.com\/v1/,
    next: checkSource,
  },
  website: {
    title: "a prerequisite, three levels deep, whose Secret does not exist",
    spec: { ...program, ...needs("orders") },
    objects: [
      newStack("orders", { ...program, ...needs("fine", "database") }),
      newStack("database", { ...program, ...needs("network") }),
    ],
    reason: "PrerequisiteNotSatisfied",
    cause: "inputMissing",
    message: /there is no Secret aws/,
    next: createInput,
    path: ["website", "orders", "database", "network"],
  },
  lonely: {
    title: "a prerequisite that does not exist",
    spec: { ...program, ...needs("nobody") },
    reason: "PrerequisiteNotSatisfied",
    cause: "stackMissing",
    message: /^$/,
    next: /Create the Stack nobody, or remove it from the prerequisites/,
    path: ["lonely", "nobody"],
  },
  output: {
    title: "an output that another Stack does not have",
    spec: { ...program, secretsRef: { "fine:url": { type: "StackOutput", stack: "fine", output: "url" } } },
    reason: "PrerequisiteNotSatisfied",
    cause: "outputMissing",
    message: /Stack fine has no output url: it has text/,
    next: /Export the output in the program of that Stack/,
  },
  chicken: {
    title: "Stacks that depend on each other",
    spec: { ...program, ...needs("egg") },
    objects: [newStack("egg", { ...program, ...needs("chicken") })],
    reason: "SpecInvalid",
    cause: "dependencyCycle",
    message: /chicken → egg → chicken/,
    next: /Remove one of the prerequisites/,
  },
  suspended: {
    title: "a suspension",
    spec: { ...program, suspend: true },
    reason: "Suspended",
    cause: "suspended",
    message: /because spec\.suspend is true/,
    next: /To resume: kubectl pulumi resume suspended/,
  },
  window: {
    title: "an update window that is closed",
    spec: { ...program, updateWindows: [closedWindow] },
    reason: "OutsideUpdateWindow",
    cause: "outsideUpdateWindow",
    message: /no update window is open/,
    next: /The next window opens at/,
  },
  taken: {
    title: "a name that is taken",
    spec: program,
    objects: [otherService("taken-workspace")],
    reason: "OwnershipConflict",
    cause: "ownershipConflict",
    message: /taken-workspace \(without an owner\) already exists/,
    next: /Delete or rename the object/,
  },
  account: {
    title: "a service account that does not exist",
    spec: { ...program, serviceAccountName: "no-account" },
    reason: "WorkspaceFailed",
    cause: "serviceAccountMissing",
    message: /no-account/,
    next: /kubectl create serviceaccount no-account/,
  },
  rejected: {
    title: "a pod that admission rejects",
    spec: { ...program, ...pod({ priorityClassName: "no-priority" }) },
    reason: "WorkspaceFailed",
    cause: "podRejected",
    message: /no-priority/,
    next: /Change what the message names in workspaceTemplate/,
  },
  unschedulable: {
    title: "a pod that no node can take",
    spec: { ...program, ...pod({ nodeSelector: { disk: "quantum" } }) },
    reason: "StackProcessing",
    cause: "podUnschedulable",
    message: /didn't match Pod's node affinity\/selector/,
    next: /Add nodes, lower workspaceTemplate/,
  },
  image: {
    title: "an image that cannot be pulled",
    spec: { ...program, workspaceTemplate: { spec: { image: "registry.invalid/workspace:1" } } },
    reason: "StackProcessing",
    cause: "imageNotPulled",
    message: /registry\.invalid\/workspace:1/,
    next: /Correct workspaceTemplate\.spec\.image, or add imagePullSecrets/,
  },
  crash: {
    title: "an init container that crashes",
    spec: { ...program, workspaceTemplate: podWith({ initContainers: [crashing] }) },
    reason: "StackProcessing",
    cause: "podCrashing",
    message: /broken/,
    next: /kubectl describe pod crash-workspace-0/,
  },
  backend: {
    title: "a backend that does not exist",
    spec: {
      ...program,
      envRefs: { PULUMI_BACKEND_URL: literal("file:///nowhere"), PULUMI_CONFIG_PASSPHRASE: literal("passphrase") },
    },
    reason: "WorkspaceFailed",
    cause: "workspaceFailed",
    message: /nowhere/,
    next: /To read the log of the workspace: kubectl pulumi logs backend/,
  },
  "no-stack": {
    title: "a Pulumi stack that does not exist",
    spec: { ...program, stack: "no-such-stack", useLocalStackOnly: true },
    reason: "WorkspaceFailed",
    cause: "stackNotFound",
    message: /no-such-stack/,
    next: /Create the Pulumi stack, correct spec\.stack, or remove useLocalStackOnly/,
  },
  failing: {
    title: "a program that fails, more often than maxFailures allows",
    repository: "failing",
    spec: { maxFailures: 1 },
    reason: "RetriesExhausted",
    cause: "programError",
    message: /nowhere/,
    next: /Fix the program, its configuration or its permissions/,
  },
} satisfies Record<string, Situation>;

/** It has the name of the Service of a workspace. */
function otherService(name: string): object {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { clusterIP: "None", selector: { app: name } },
  };
}

beforeAll(async () => {
  scene.git.create("site").commit(yamlProject("one"));
  scene.git.create("private").commit(yamlProject("one"));
  const broken = { name: "failing", runtime: "yaml", outputs: { text: "${nowhere}" } };
  scene.git.create("failing").commit({ "Pulumi.yaml": JSON.stringify(broken) });
  const stacks = Object.entries<Situation>(situations).map(([name, { repository, spec }]) =>
    newStack(name, { ...(repository !== undefined && scene.git.source(repository)), ...spec }),
  );
  // What the Stacks need comes first, so that they do not find it missing by chance.
  await applyTo(scene, ...Object.values<Situation>(situations).flatMap(({ objects = [] }) => objects), ...stacks);
  await applyTo(
    scene.second,
    { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "none" }, spec: { hard: { pods: "0" } } },
    newProgram("fine", {}),
    newStack("quota", { ...program, protect: true }),
  );
}, slow);

/** Other Stacks, which it waits for, may not have been processed when the operator reports the reason. */
async function explanationOf(name: string, { reason, cause, message }: Situation) {
  await stackUntil(scene, name, reason === "Ready" ? isReady : hasReason(reason));
  let last: Awaited<ReturnType<typeof cli.why>> | undefined;
  const poll = async () => {
    last = await cli.why(name);
    return last.cause === cause && message.test(last.message ?? "") && last;
  };
  try {
    return await waitFor(poll, { timeoutMs: 180_000, pollMs: 1000, what: cause });
  } catch (error) {
    throw new Error(`why ${name}: expected ${cause}, found ${JSON.stringify(last, undefined, 2)}`, { cause: error });
  }
}

describe("why explains", () => {
  for (const [name, situation] of Object.entries<Situation>(situations)) {
    const { title, next, path = [name] } = situation;
    test.concurrent(
      title,
      async () => {
        const explained = await explanationOf(name, situation);
        expect(explained.path).toEqual([...path]);
        if (next) expect(explained.next[0]).toMatch(next);
        else expect(explained.next).toEqual([]);
      },
      slow,
    );
  }

  test.concurrent(
    "in a terminal, with the way to the root cause",
    async () => {
      await explanationOf("website", situations.website);
      const last = /in the namespace of\s+the Stack\./;
      const { out } = await cli.inTerminal(["why", "website"], { last, size: pictureSize });
      expect(out).toMatch(/waits for orders, which waits for database, which waits for\s+network\./);
      updatePicture("why website", out);
    },
    slow,
  );

  test.concurrent(
    "a quota, and then the deletion of the namespace",
    async () => {
      const isReported = (stack: Stack): boolean => readyMessage(stack).includes("exceeded quota: none");
      await stackUntil(scene.second, "quota", isReported);
      const quota = await secondCli.why("quota");
      expect(quota.cause).toBe("quotaExceeded");
      expect(quota.next[0]).toContain(`kubectl describe resourcequota -n ${scene.second.namespace}`);

      await kubectl(["delete", "namespace", scene.second.namespace, "--wait=false"]);
      const leaving = await secondCli.why("quota");
      expect(leaving.cause).toBe("namespaceTerminating");
      const patch = JSON.stringify({ spec: { protect: false } });
      await kubectl(["patch", "stack", "quota", ...at(scene.second), "--type=merge", "--patch", patch]);
    },
    slow,
  );
});
