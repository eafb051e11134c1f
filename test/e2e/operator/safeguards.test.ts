/** What must not happen on a cluster: others control agents, secrets leak, Stacks wait for capacity indefinitely. */
import { beforeAll, expect, test } from "bun:test";

import type { Stack } from "@pko/api";
import { secondNode } from "@pko/cluster";
import { updates, workspaces } from "@pko/operator/kinds";
import { workspaceServerName } from "@pko/rpc";
import { connectAgent } from "@pko/rpc/client";
import type { Certificate } from "@pko/rpc/pki";
import { freePort, waitFor } from "@pko/testkit";

import {
  agentLog,
  applyTo,
  at,
  filesProject,
  fromSecret,
  getStack,
  isReady,
  kubectl,
  newSecret,
  newStack,
  onFileBackend,
  podWith,
  readSecret,
  stackUntil,
  useScene,
  within,
  yamlProject,
} from "../harness.ts";

const slow = 600_000;
const canary = "canary-4711-";
const credentials = { user: "git", password: `${canary}git` };
/** An extended resource that each pod requests. */
const slot = "e2e.pulumi.com/slot";
let metricsPort: number;

const scene = useScene("guards", {
  operator: async () => {
    metricsPort = await freePort();
    return { flags: [`--metrics-address=127.0.0.1:${metricsPort}`, "--log-level=debug"] };
  },
  git: { credentials: `${credentials.user}:${credentials.password}` },
});

/** Prints secrets, and fails with them. */
const blurting = `const config = new pulumi.Config();
exports.password = config.requireSecret("password");
console.log(process.env.DATABASE_URL, process.env.MY_TOKEN, config.require("password"));
throw new Error("no entry with " + [process.env.DATABASE_URL, process.env.MY_TOKEN, config.require("password")]);`;
const secrets = { url: `${canary}url`, token: `${canary}token`, password: `${canary}password`, git: `${canary}git` };

beforeAll(async () => {
  scene.git.create("plain").commit(yamlProject("one"));
  scene.git.create("blurting").commit(filesProject(blurting));
  await applyTo(scene, newSecret("git-credentials", credentials), newSecret("secrets", { ...secrets, user: "git" }));
  const from = (key: string): object => fromSecret("secrets", key);
  await deploy("blurting", {
    envRefs: { ...onFileBackend.envRefs, DATABASE_URL: from("url"), MY_TOKEN: from("token") },
    secretsRef: { "files:password": from("password") },
    maxFailures: 1,
  });
});

const blurtingFailed = (): Promise<Stack> =>
  stackUntil(scene, "blurting", ({ status }) => status?.lastUpdate?.state === "failed");

test.concurrent(
  "an agent accepts requests only from the operator",
  async () => {
    await deploy("target", { repository: "plain" });
    await Promise.all([stackUntil(scene, "target", isReady), blurtingFailed()]);
    const host = await kubectl(["get", "pod", "target-workspace-0", ...at(scene), "--output=jsonpath={.status.podIP}"]);
    const serverName = workspaceServerName({ namespace: scene.namespace, name: "target" });
    const getInfo = async (credentials: Certificate) =>
      await connectAgent({ address: { host, port: 50_051, serverName }, credentials: () => credentials }).info();

    // With the certificates of another workspace, and of the agent itself.
    for (const name of ["blurting", "target"]) {
      const reply = await getInfo(await workspaceCertificate(name));
      expect({ name, ok: reply.ok }).toEqual({ name, ok: false });
    }
    const url = `https://${host}:50051/v1/info`;
    const { ca } = await workspaceCertificate("target");
    const withoutCertificate = fetch(url, { method: "POST", body: "{}", tls: { ca, rejectUnauthorized: false } });
    expect(await withoutCertificate.then(({ status }) => status).catch(() => "refused")).toBe("refused");
    const withoutTls = fetch(url.replace("https", "http"), { method: "POST", body: "{}" });
    expect(await withoutTls.then(({ ok }) => ok).catch(() => false)).toBe(false);
  },
  slow,
);

test.concurrent(
  "logs, events, statuses and metrics contain no secret, even if the program prints it",
  async () => {
    const failed = await blurtingFailed();
    // The error is reported with the secrets masked.
    expect(failed.status?.lastUpdate?.message).toContain("no entry with [secret]");
    const { client, namespace } = scene;
    const sinks = {
      operator: await scene.operator.log(),
      agent: await agentLog(scene, "blurting"),
      events: await kubectl(["get", "events", ...at(scene), "--output=json"]),
      stack: JSON.stringify(await getStack(scene, "blurting")),
      updates: JSON.stringify((await client.list(updates, { namespace })).items),
      workspaces: JSON.stringify((await client.list(workspaces, { namespace })).items),
      // The same name as in the Go operator, because dashboards use it.
      metrics: await metricsWith(`stacks_failing{namespace="${namespace}",name="blurting"} 1\n`),
    };
    for (const controller of ["stack", "workspace", "update", "program"].map((kind) => `${kind}-controller`)) {
      expect(sinks.metrics).toContain(
        `controller_runtime_reconcile_total{controller="${controller}",result="success"}`,
      );
      expect(sinks.metrics).toContain(`workqueue_depth{name="${controller}",controller="${controller}"}`);
    }
    for (const [sink, text] of Object.entries(sinks)) {
      expect({ sink, isEmpty: text.length < 100 }).toEqual({ sink, isEmpty: false });
      for (const secret of Object.values(secrets)) {
        for (const form of [secret, btoa(secret)]) {
          expect({ sink, form, isLeaked: text.includes(form) }).toEqual({ sink, form, isLeaked: false });
        }
      }
    }
  },
  slow,
);

// Not at the same time as other tests: pods of theirs that are idle would be preempted.
test(
  "Stacks finish one after another when the node has no capacity for all of their pods",
  async () => {
    scene.defer(() => setSlots(null));
    await setSlots("2");
    const names = ["a", "b", "c", "d", "e"].map((letter) => `crowd-${letter}`);
    const container = { resources: { limits: { [slot]: "1" }, requests: { [slot]: "1" } } };
    await Promise.all(names.map((name) => deploy(name, { repository: "plain" }, container)));
    await Promise.all(names.map((name) => stackUntil(scene, name, within(540_000, isReady))));
  },
  slow,
);

async function workspaceCertificate(workspace: string): Promise<Certificate> {
  const {
    "ca.crt": ca = "",
    "tls.crt": cert = "",
    "tls.key": key = "",
  } = await readSecret(scene, `${workspace}-workspace-tls`);
  return { ca, cert, key };
}

/** The metrics, as soon as they contain this: the operator's stores may be behind the status that the test has read. */
async function metricsWith(text: string): Promise<string> {
  return await waitFor(
    async () => {
      const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      return metrics.includes(text) && metrics;
    },
    { timeoutMs: 60_000, what: `the metric ${text}` },
  );
}

/** Sets how many the nodes offer; null removes the resource. The second node, of another test, takes no pods of this one. */
async function setSlots(count: string | null): Promise<void> {
  const patch = JSON.stringify({ status: { capacity: { [slot]: count }, allocatable: { [slot]: count } } });
  const nodes = (await kubectl(["get", "nodes", "--output=name"])).trim().split("\n");
  for (const node of nodes.filter((name) => name !== `node/${secondNode.name}`)) {
    await kubectl(["patch", node, "--subresource=status", "--type=merge", "--patch", patch]);
  }
}

interface StackFields {
  /** The name of the Stack by default. */
  readonly repository?: string;
  readonly [field: string]: unknown;
}

async function deploy(
  name: string,
  { repository = name, ...spec }: StackFields,
  container: object = {},
): Promise<void> {
  const basicAuth = {
    userName: fromSecret("git-credentials", "user"),
    password: fromSecret("git-credentials", "password"),
  };
  const source = { ...scene.git.source(repository), gitAuth: { basicAuth } };
  await applyTo(scene, newStack(name, { workspaceTemplate: podWith({ container }), ...source, ...spec }));
}
