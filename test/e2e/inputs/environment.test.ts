/** Environment variables from every source, outputs of other Stacks, and pod templates. */
import { beforeAll, describe, expect, test } from "bun:test";

import type { Stack } from "@pko/api";
import { waitFor } from "@pko/testkit";
import type { Pod } from "kubernetes-types/core/v1";

import {
  applyTo,
  at,
  execInPod,
  hasReason,
  isReady,
  kubectl,
  listUpdates,
  literal,
  readyMessage,
  newConfigMap,
  newProgram,
  newSecret,
  newServiceAccount,
  newStack,
  onFileBackend,
  podUid,
  podWith,
  smallWorkspace,
  readOutput,
  requestReconcile,
  stackUntil,
  stalledReason,
  useScene,
} from "../harness.ts";
import { echoProject, type Given } from "./echo.ts";

const slow = 420_000;
const scene = useScene("environment", { secondNamespace: "environment-second" });
/** With an operator that does not enforce the security profile. */
const lenient = useScene("lenient", { operator: { flags: ["--enforce-security-profile=false"] } });

beforeAll(() => void scene.git.create("echo").commit(echoProject));

const source = (): object => scene.git.source("echo");

async function readGiven(stack: string): Promise<Given> {
  return JSON.parse(await readOutput(scene, stack, "given")) as Given;
}

async function readVariables(stack: string): Promise<Given["variables"]> {
  return (await readGiven(stack)).variables;
}

const isWaiting = hasReason("PrerequisiteNotSatisfied");

/** A Program whose outputs other Stacks use. */
const base = (region: string): object =>
  newProgram("base", { outputs: { region, cluster: { name: region, nodes: [1, 2] }, constant: "same" } });

/** Variables that Stacks must not read, each with its error message. */
const refused: Readonly<Record<string, readonly [envRef: object, message: string]>> = {
  "the operator's own environment": [
    { type: "Env", env: { name: "HOME" } },
    "would read the operator's own environment",
  ],
  "the operator's own files": [{ type: "FS", filesystem: { path: "/etc/passwd" } }, "own file system"],
};

describe("the environment", () => {
  test.concurrent(
    "has variables of every type, and a template changes the pod",
    async () => {
      const { namespace } = scene;
      await applyTo(
        scene,
        newSecret("one", { key: "canary-one" }),
        newConfigMap("settings", { level: "debug", "app.conf": "port = 80\n" }),
        newConfigMap("all-of-it", { FROM_ENVS: "envs", BOTH: "envs" }),
        newSecret("all-secrets", { FROM_ENV_SECRETS: "canary-two", BOTH: "envSecrets" }),
        newServiceAccount("deployer"),
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
        "FROM_SIDECAR",
        "AGENT_NAME",
        "AGENT_GRACE_SECONDS",
        "POD_NAMESPACE",
        "POD_SA_NAME",
      ];
      const appending = (name: string, line: string, then = ""): object => ({
        name,
        image: "busybox",
        command: ["sh", "-c", `echo "${line}" >> $PULUMI_ENV\n${then}`],
      });
      const { podTemplate } = podWith({
        sidecars: [appending("renewer", "FROM_SIDECAR=sidecar", "exec sleep 3600")],
        container: { env: [{ name: "FROM_POD_TEMPLATE", value: "template" }] },
        mounts: [{ name: "conf", mountPath: "/etc/app" }],
        volumes: [{ name: "conf", configMap: { name: "settings" } }],
      }).spec;
      await applyTo(
        scene,
        newStack("variables", {
          ...source(),
          serviceAccountName: "deployer",
          envRefs: {
            PULUMI_BACKEND_URL: onFileBackend.envRefs.PULUMI_BACKEND_URL,
            ECHO: literal(names.join(",")),
            A_LITERAL: literal("unchanged: $HOME 'q'"),
            A_SECRET: { type: "Secret", secret: { name: "one", key: "key" } },
            A_CONFIGMAP: { type: "ConfigMap", configMap: { name: "settings", key: "level" } },
            // These belong to the program, even though the agent has settings of the same names.
            AGENT_NAME: literal("smith"),
            AGENT_GRACE_SECONDS: literal("x"),
          },
          envs: ["all-of-it"],
          envSecrets: ["all-secrets"],
          workspaceTemplate: {
            metadata: { labels: { team: "platform" }, annotations: { note: "kept" } },
            spec: {
              image: "docker.io/pulumi/pulumi:latest-nonroot",
              ...smallWorkspace,
              resources: { requests: { cpu: "20m", memory: "96Mi" }, limits: { memory: "2Gi" } },
              // The init container of the docs.
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
                },
              },
            },
          },
        }),
      );
      await stackUntil(scene, "variables", isReady);
      expect(await readVariables("variables")).toEqual({
        A_LITERAL: "unchanged: $HOME 'q'",
        A_SECRET: "canary-one",
        A_CONFIGMAP: "debug",
        FROM_ENVS: "envs",
        FROM_ENV_SECRETS: "canary-two",
        BOTH: "envSecrets",
        MY_CUSTOM_VAR: "value",
        FROM_POD_TEMPLATE: "template",
        FROM_INIT: "init",
        FROM_SIDECAR: "sidecar",
        AGENT_NAME: "smith",
        AGENT_GRACE_SECONDS: "x",
        POD_NAMESPACE: namespace,
        POD_SA_NAME: "deployer",
      });
      const pod = JSON.parse(await kubectl(["get", "pod", "variables-workspace-0", ...at(scene), "-o=json"])) as Pod;
      expect(pod.metadata?.labels).toMatchObject({ tier: "back" });
      expect(pod.spec).toMatchObject({
        serviceAccountName: "deployer",
        nodeSelector: { "kubernetes.io/os": "linux" },
        imagePullSecrets: [{ name: "registry" }],
      });
      expect(pod.spec?.initContainers?.map(({ name }) => name)).toEqual(["bootstrap", "second", "setup-env"]);
      const container = pod.spec?.containers.find(({ name }) => name === "pulumi");
      expect(container?.resources).toMatchObject({
        requests: { cpu: "20m", memory: "96Mi" },
        limits: { memory: "2Gi" },
      });
      const workspace = await kubectl(["get", "workspace", "variables", ...at(scene), "-o=json"]);
      expect(JSON.parse(workspace)).toMatchObject({
        metadata: { labels: { team: "platform" }, annotations: { note: "kept" } },
      });
      expect(await execInPod(scene, "variables", "cat /etc/app/app.conf")).toBe("port = 80\n");

      // A changed Secret replaces the pod without an update, and the next update uses it.
      const before = await podUid(scene, "variables");
      await applyTo(scene, newSecret("one", { key: "canary-changed" }));
      await waitFor(async () => (await podUid(scene, "variables")) !== before, {
        timeoutMs: 120_000,
        what: "a pod with the changed Secret",
      });
      expect(await listUpdates(scene, "variables")).toHaveLength(1);
      await requestReconcile(scene, "variables", "changed");
      await waitFor(async () => (await readVariables("variables"))["A_SECRET"] === "canary-changed", {
        timeoutMs: 240_000,
        what: "an update with the changed Secret",
      });
      expect(await listUpdates(scene, "variables")).toHaveLength(2);
    },
    slow,
  );

  test.concurrent(
    "allows root, a privileged container and a host path if the security profile is not enforced",
    async () => {
      // Only root with its capabilities can change the owner of a file.
      const script = 'touch /cache/file && chown 1234 /cache/file && echo "USR=$(ls -d /node/share)" >> $PULUMI_ENV';
      const owner = {
        name: "owner",
        image: "busybox",
        command: ["sh", "-c", script],
        securityContext: { runAsUser: 0 },
        volumeMounts: [
          { name: "cache", mountPath: "/cache" },
          { name: "node", mountPath: "/node", readOnly: true },
        ],
      };
      const docker = {
        name: "docker",
        image: "busybox",
        command: ["sleep", "3600"],
        securityContext: { privileged: true, runAsUser: 0 },
      };
      const workspaceTemplate = podWith({
        initContainers: [owner],
        sidecars: [docker],
        volumes: [
          { name: "cache", emptyDir: {} },
          { name: "node", hostPath: { path: "/usr" } },
        ],
      });
      const envRefs = { ...onFileBackend.envRefs, ECHO: literal("USR") };
      await applyTo(lenient, newStack("lenient", { ...source(), envRefs, workspaceTemplate }));
      await stackUntil(lenient, "lenient", isReady);
      const { variables } = JSON.parse(await readOutput(lenient, "lenient", "given")) as Given;
      expect(variables).toEqual({ USR: "/node/share" });
    },
    slow,
  );

  test.concurrent(
    "has outputs of another Stack in its namespace, waits for them and follows them, and reports a dependency cycle",
    async () => {
      const output = (name: string): object => ({ type: "StackOutput", stack: "base", output: name });
      const names = ["REGION", "CLUSTER", "CONSTANT"];
      const dependent = newStack("dependent", {
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
      await applyTo(scene, dependent);
      const waiting = await stackUntil(scene, "dependent", isWaiting);
      expect(readyMessage(waiting)).toContain("there is no Stack base");

      const provider = (more: object = {}): object => newStack("base", { programRef: { name: "base" }, ...more });
      await applyTo(scene, base("eu-west-1"), provider());
      await stackUntil(scene, "dependent", isReady);
      expect(await readVariables("dependent")).toEqual({
        REGION: "eu-west-1",
        CLUSTER: '{"name":"eu-west-1","nodes":[1,2]}',
        CONSTANT: "same",
      });
      const { config, secretKeys } = await readGiven("dependent");
      expect({ config, secretKeys }).toEqual({
        config: { "echo:config:constant": "same" },
        secretKeys: ["echo:constant"],
      });

      // The Stack base exists in the other namespace only.
      const envRefs = { ...onFileBackend.envRefs, REGION: output("region") };
      await applyTo(scene.second, newStack("other", { ...source(), envRefs }));
      expect(readyMessage(await stackUntil(scene.second, "other", isWaiting))).toContain("there is no Stack base");

      await applyTo(scene, base("us-east-1"));
      await waitFor(async () => (await readVariables("dependent"))["REGION"] === "us-east-1", {
        timeoutMs: 240_000,
        what: "an update with the changed output",
      });
      expect(await listUpdates(scene, "dependent")).toHaveLength(2);

      const back = { ...onFileBackend.envRefs, BACK: { type: "StackOutput", stack: "dependent", output: "given" } };
      await applyTo(scene, provider({ envRefs: back }));
      const cycle = await stackUntil(scene, "base", (stack) => stalledReason(stack) === "SpecInvalid");
      expect(readyMessage(cycle)).toContain("Stacks depend on each other: base → dependent → base");
      await applyTo(scene, provider());
      await stackUntil(scene, "base", isReady);
    },
    slow,
  );

  for (const [what, [envRef, message]] of Object.entries(refused)) {
    test.concurrent(`does not have ${what}`, async () => {
      const stack = newStack("refused", { programRef: { name: "base" }, envRefs: { A: envRef } });
      expect(await applyError(stack)).toContain(message);
    });
  }

  test.concurrent(
    "does not have a Secret of another namespace",
    async () => {
      const secret = { name: "ca", key: "tls.key", namespace: "pulumi-kubernetes-operator" };
      const envRefs = { ...onFileBackend.envRefs, A: { type: "Secret", secret } };
      // With the chart's policy, the API server rejects the Stack.
      const rejection = await applyError(newStack("curious", { programRef: { name: "base" }, envRefs }));
      const isInvalid = (stack: Stack): boolean => stalledReason(stack) === "SpecInvalid";
      const message = rejection || readyMessage(await stackUntil(scene, "curious", isInvalid));
      expect(message).toContain("a Stack can read Secrets only in its own namespace");
    },
    slow,
  );
});

/** Empty if the API server accepts the object. */
async function applyError(stack: object): Promise<string> {
  try {
    await applyTo(scene, stack);
    return "";
  } catch (error) {
    return String(error);
  }
}
