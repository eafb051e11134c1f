/** Issue 8, 7: variables from every place, outputs of other Stacks, and all that a template can do to the pod. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Stack } from "@pko/api";
import { createRepository, serveGit, type GitServer } from "@pko/agent/testing";
import { network } from "@pko/cluster";
import { waitFor } from "@pko/testkit";
import type { Pod } from "kubernetes-types/core/v1";

import {
  apply,
  clearNamespace,
  isReady,
  kubectl,
  newNamespace,
  onFileBackend,
  outputOf,
  podOf,
  reconcile,
  stackUntil,
  startOperator,
  updatesOf,
  type Operator,
  type Place,
} from "../harness.ts";
import { echoProject, type Given } from "./echo.ts";
import { messageOf, stalledReasonOf } from "./messages.ts";

const slow = 420_000;
const folder = mkdtempSync(join(tmpdir(), "pko-environment-"));

let operator: Operator;
let place: Place;
/** Another namespace that the operator serves. */
let elsewhere: Place;
let git: GitServer;

beforeAll(async () => {
  const namespace = await newNamespace("environment");
  const otherNamespace = await newNamespace("environment-elsewhere");
  operator = await startOperator([namespace, otherNamespace], "--reference-check-interval=3s");
  place = { client: operator.client, namespace };
  elsewhere = { client: operator.client, namespace: otherNamespace };
  git = serveGit(folder, { hostname: network.machine });
  createRepository(folder, "echo").commit(echoProject);
}, slow);

afterAll(async () => {
  await Promise.all([clearNamespace(place.namespace), clearNamespace(elsewhere.namespace)]);
  await git.stop();
  await operator.stop();
}, slow);

const object = (kind: "Secret" | "ConfigMap", name: string, data: Record<string, string>): object => ({
  apiVersion: "v1",
  kind,
  metadata: { name, namespace: place.namespace },
  ...(kind === "Secret" ? { stringData: data } : { data }),
});

const stackOf = (name: string, spec: object, { namespace } = place): object => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name, namespace },
  spec: { ...onFileBackend, stack: name, destroyOnFinalize: true, ...spec },
});

const source = (): object => ({ projectRepo: `http://${network.machine}:${git.port}/echo.git`, branch: "main" });

const literal = (value: string): object => ({ type: "Literal", literal: { value } });

async function givenTo(stack: string): Promise<Given> {
  return JSON.parse(await outputOf(place, stack, "given")) as Given;
}

async function variablesOf(stack: string): Promise<Given["variables"]> {
  return (await givenTo(stack)).variables;
}

const isWaiting = ({ status }: Stack): boolean =>
  Boolean(status?.conditions?.some(({ reason }) => reason === "PrerequisiteNotSatisfied"));

/** A Program with the outputs that the others are given. */
const base = (region: string): object => ({
  apiVersion: "pulumi.com/v1",
  kind: "Program",
  metadata: { name: "base", namespace: place.namespace },
  program: { outputs: { region, cluster: { name: region, nodes: [1, 2] }, constant: "same" } },
});

/** What Stacks may not have, each with the words that it is refused with. */
const refused: Readonly<Record<string, readonly [envRef: object, words: string]>> = {
  "the operator's own environment": [
    { type: "Env", env: { name: "HOME" } },
    "would read the operator's own environment",
  ],
  "the operator's own files": [{ type: "FS", filesystem: { path: "/etc/passwd" } }, "own file system"],
};

describe("the environment", () => {
  test.concurrent(
    "has variables of every type; a template shapes the pod that has them",
    async () => {
      const { namespace } = place;
      await apply(
        object("Secret", "one", { key: "canary-one" }),
        object("ConfigMap", "settings", { level: "debug", "app.conf": "port = 80\n" }),
        object("ConfigMap", "all-of-it", { FROM_ENVS: "envs", BOTH: "envs" }),
        object("Secret", "all-secrets", { FROM_ENV_SECRETS: "canary-two", BOTH: "envSecrets" }),
        { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "deployer", namespace } },
      );
      const names = [
        "A_LITERAL",
        "A_SECRET",
        "A_CONFIGMAP",
        "FROM_ENVS",
        "FROM_ENV_SECRETS",
        "BOTH",
        "MY_CUSTOM_VAR",
        "FROM_POD_TEMPLATE",
        "FROM_INIT",
        "POD_NAMESPACE",
        "POD_SA_NAME",
      ];
      const { envRefs, workspaceTemplate } = onFileBackend;
      const { podTemplate } = workspaceTemplate.spec;
      const appending = (name: string, line: string): object => ({
        name,
        image: "busybox",
        command: ["sh", "-c", `echo "${line}" >> $PULUMI_ENV\n`],
      });
      const [pulumi] = podTemplate.spec.containers;
      await apply(
        stackOf("variables", {
          ...source(),
          serviceAccountName: "deployer",
          envRefs: {
            PULUMI_BACKEND_URL: envRefs.PULUMI_BACKEND_URL,
            ECHO: literal(names.join(",")),
            A_LITERAL: literal("as it is: $HOME 'q'"),
            A_SECRET: { type: "Secret", secret: { name: "one", key: "key" } },
            A_CONFIGMAP: { type: "ConfigMap", configMap: { name: "settings", key: "level" } },
          },
          envs: ["all-of-it"],
          envSecrets: ["all-secrets"],
          workspaceTemplate: {
            metadata: { labels: { team: "platform" }, annotations: { note: "kept" } },
            spec: {
              image: "docker.io/pulumi/pulumi:latest-nonroot",
              resources: { requests: { cpu: "20m", memory: "96Mi" }, limits: { memory: "2Gi" } },
              // Seed 001, with the two lines of its init container.
              initContainers: [
                {
                  name: "setup-env",
                  image: "busybox",
                  command: [
                    "sh",
                    "-c",
                    'echo "PULUMI_CONFIG_PASSPHRASE=my-passphrase" >> $PULUMI_ENV\n\necho "MY_CUSTOM_VAR=value" >> $PULUMI_ENV\n\n',
                  ],
                },
              ],
              podTemplate: {
                metadata: { labels: { tier: "back" } },
                spec: {
                  ...podTemplate.spec,
                  nodeSelector: { "kubernetes.io/os": "linux" },
                  imagePullSecrets: [{ name: "registry" }],
                  initContainers: [appending("second", "FROM_INIT=init")],
                  containers: [
                    {
                      ...pulumi,
                      env: [{ name: "FROM_POD_TEMPLATE", value: "template" }],
                      volumeMounts: [...pulumi.volumeMounts, { name: "conf", mountPath: "/etc/app" }],
                    },
                  ],
                  volumes: [...podTemplate.spec.volumes, { name: "conf", configMap: { name: "settings" } }],
                },
              },
            },
          },
        }),
      );
      await stackUntil(place, "variables", isReady);
      expect(await variablesOf("variables")).toEqual({
        A_LITERAL: "as it is: $HOME 'q'",
        A_SECRET: "canary-one",
        A_CONFIGMAP: "debug",
        FROM_ENVS: "envs",
        FROM_ENV_SECRETS: "canary-two",
        BOTH: "envSecrets",
        MY_CUSTOM_VAR: "value",
        FROM_POD_TEMPLATE: "template",
        FROM_INIT: "init",
        POD_NAMESPACE: namespace,
        POD_SA_NAME: "deployer",
      });
      const pod = JSON.parse(await kubectl(["get", "pod", "variables-workspace-0", "-n", namespace, "-o=json"])) as Pod;
      expect(pod.metadata?.labels).toMatchObject({ tier: "back" });
      expect(pod.spec).toMatchObject({
        serviceAccountName: "deployer",
        nodeSelector: { "kubernetes.io/os": "linux" },
        imagePullSecrets: [{ name: "registry" }],
      });
      // As Kubernetes merges: what the template adds comes first.
      expect(pod.spec?.initContainers?.map(({ name }) => name)).toEqual(["second", "setup-env", "bootstrap"]);
      const container = pod.spec?.containers.find(({ name }) => name === "pulumi");
      expect(container?.resources).toMatchObject({
        requests: { cpu: "20m", memory: "96Mi" },
        limits: { memory: "2Gi" },
      });
      const workspace = await kubectl(["get", "workspace", "variables", "-n", namespace, "-o=json"]);
      expect(JSON.parse(workspace)).toMatchObject({
        metadata: { labels: { team: "platform" }, annotations: { note: "kept" } },
      });
      const exec = ["exec", "variables-workspace-0", "-n", namespace, "-c", "pulumi", "--", "cat", "/etc/app/app.conf"];
      expect(await kubectl(exec)).toBe("port = 80\n");

      // A changed Secret replaces the pod, and is no update by itself; the next one has it.
      const before = await podOf(place, "variables");
      await apply(object("Secret", "one", { key: "canary-changed" }));
      await waitFor(async () => (await podOf(place, "variables")) !== before, {
        timeoutMs: 120_000,
        what: "a pod with the changed Secret",
      });
      expect(await updatesOf(place, "variables")).toHaveLength(1);
      await reconcile(place, "variables", "changed");
      await waitFor(async () => (await variablesOf("variables"))["A_SECRET"] === "canary-changed", {
        timeoutMs: 240_000,
        what: "an update with the changed Secret",
      });
      expect(await updatesOf(place, "variables")).toHaveLength(2);
    },
    slow,
  );

  test.concurrent(
    "has outputs of another Stack of its namespace, which it waits for and follows; a circle is told",
    async () => {
      const output = (name: string): object => ({ type: "StackOutput", stack: "base", output: name });
      const names = ["REGION", "CLUSTER", "CONSTANT"];
      const dependent = stackOf("dependent", {
        ...source(),
        envRefs: {
          ...onFileBackend.envRefs,
          ECHO: literal(names.join(",")),
          REGION: output("region"),
          CLUSTER: output("cluster"),
          CONSTANT: output("constant"),
        },
        secretsRef: { constant: output("constant") },
      });
      await apply(dependent);
      const waiting = await stackUntil(place, "dependent", isWaiting);
      expect(messageOf(waiting)).toContain("there is no Stack base");

      const provider = (more: object = {}): object => stackOf("base", { programRef: { name: "base" }, ...more });
      await apply(base("eu-west-1"), provider());
      await stackUntil(place, "dependent", isReady);
      expect(await variablesOf("dependent")).toEqual({
        REGION: "eu-west-1",
        CLUSTER: '{"name":"eu-west-1","nodes":[1,2]}',
        CONSTANT: "same",
      });
      const { config, secretKeys } = await givenTo("dependent");
      expect({ config, secretKeys }).toEqual({
        config: { "echo:config:constant": "same" },
        secretKeys: ["echo:constant"],
      });

      // The Stack base has succeeded, but not here.
      const envRefs = { ...onFileBackend.envRefs, REGION: output("region") };
      await apply(stackOf("stranger", { ...source(), envRefs }, elsewhere));
      expect(messageOf(await stackUntil(elsewhere, "stranger", isWaiting))).toContain("there is no Stack base");

      await apply(base("us-east-1"));
      await waitFor(async () => (await variablesOf("dependent"))["REGION"] === "us-east-1", {
        timeoutMs: 240_000,
        what: "an update with the changed output",
      });
      expect(await updatesOf(place, "dependent")).toHaveLength(2);

      const back = { ...onFileBackend.envRefs, BACK: { type: "StackOutput", stack: "dependent", output: "given" } };
      await apply(provider({ envRefs: back }));
      const circle = await stackUntil(place, "base", (stack) => stalledReasonOf(stack) === "SpecInvalid");
      expect(messageOf(circle)).toContain("Stacks wait for each other: base → dependent → base");
      await apply(provider());
      await stackUntil(place, "base", isReady);
    },
    slow,
  );

  for (const [what, [envRef, words]] of Object.entries(refused)) {
    test.concurrent(`does not have ${what}`, async () => {
      const stack = stackOf("refused", { programRef: { name: "base" }, envRefs: { A: envRef } });
      expect(await refusalOf(stack)).toContain(words);
    });
  }

  test.concurrent(
    "does not have a Secret of another namespace",
    async () => {
      const secret = { name: "authority", key: "tls.key", namespace: "pulumi-kubernetes-operator" };
      const envRefs = { ...onFileBackend.envRefs, A: { type: "Secret", secret } };
      // Where the chart's policy is installed, the API server says it already.
      const refusal = await refusalOf(stackOf("curious", { programRef: { name: "base" }, envRefs }));
      const isInvalid = (stack: Stack): boolean => stalledReasonOf(stack) === "SpecInvalid";
      const words = refusal || messageOf(await stackUntil(place, "curious", isInvalid));
      expect(words).toContain("a Stack reads Secrets of its own namespace alone");
    },
    slow,
  );
});

async function refusalOf(stack: object): Promise<string> {
  try {
    await apply(stack);
    return "";
  } catch (error) {
    return String(error);
  }
}
