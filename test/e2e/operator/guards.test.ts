/** What must not happen on a cluster: strangers that give orders to agents, secrets that are told, Stacks without room for ever. */
import { beforeAll, expect, test } from "bun:test";

import { builtin, type Known } from "@pko/kube";
import { updates, workspaces } from "@pko/operator";
import { workspaceServerName } from "@pko/rpc";
import { connectAgent } from "@pko/rpc/client";
import type { Certificate } from "@pko/rpc/pki";
import { freePort } from "@pko/testkit";
import type { Secret } from "kubernetes-types/core/v1";

import {
  agentLog,
  applyTo,
  at,
  fromSecret,
  getStack,
  isReady,
  kubectl,
  onFileBackend,
  podWith,
  secretOf,
  stackOf,
  stackUntil,
  useScene,
} from "../harness.ts";
import { filesProject, yamlProject } from "./programs.ts";

const slow = 600_000;
const canary = "canary-4711-";
const credentials = { user: "git", password: `${canary}git` };
/** What a pod needs, and the node has two of. */
const slot = "e2e.pulumi.com/slot";
const metricsPort = await freePort();

const scene = useScene("guards", {
  operator: { flags: [`--metrics-address=127.0.0.1:${metricsPort}`, "--log-level=debug"] },
  git: { credentials: `${credentials.user}:${credentials.password}` },
});

beforeAll(async () => {
  scene.git.create("plain").commit(yamlProject("one"));
  await applyTo(scene, secretOf("git-credentials", credentials));
});

test.concurrent(
  "an agent takes orders from nobody but the operator",
  async () => {
    await deploy("guarded", { repository: "plain" });
    await deploy("neighbour", { repository: "plain" });
    await Promise.all(["guarded", "neighbour"].map((name) => stackUntil(scene, name, isReady)));
    const host = await kubectl([
      "get",
      "pod",
      "guarded-workspace-0",
      ...at(scene),
      "--output=jsonpath={.status.podIP}",
    ]);
    const serverName = workspaceServerName({ namespace: scene.namespace, name: "guarded" });
    const ask = async (credentials: Certificate) =>
      await connectAgent({ address: { host, port: 50_051, serverName }, credentials: () => credentials }).info();

    // A neighbour that has got out of its pod, with all that it holds; and the agent itself.
    for (const name of ["neighbour", "guarded"]) {
      const reply = await ask(await certificateOf(name));
      expect({ name, ok: reply.ok }).toEqual({ name, ok: false });
    }
    const url = `https://${host}:50051/v1/info`;
    const { ca } = await certificateOf("guarded");
    const nobody = fetch(url, { method: "POST", body: "{}", tls: { ca, rejectUnauthorized: false } });
    expect(await nobody.then(({ status }) => status).catch(() => "refused")).toBe("refused");
    const plain = fetch(url.replace("https", "http"), { method: "POST", body: "{}" });
    expect(await plain.then(({ ok }) => ok).catch(() => false)).toBe(false);
  },
  slow,
);

test.concurrent(
  "no secret is told by logs, events, statuses or metrics, though the program shouts it",
  async () => {
    const blurt = `const config = new pulumi.Config();
export const password = config.requireSecret("password");
console.log(process.env.DATABASE_URL, process.env.MY_TOKEN, config.require("password"));
throw new Error("no entry with " + [process.env.DATABASE_URL, process.env.MY_TOKEN, config.require("password")]);`;
    scene.git.create("blurting").commit(filesProject(blurt));
    const data = { url: `${canary}url`, token: `${canary}token`, password: `${canary}password`, git: `${canary}git` };
    await applyTo(scene, secretOf("secrets", { ...data, user: "git" }));
    const from = (key: string): object => fromSecret("secrets", key);
    await deploy("blurting", {
      envRefs: { ...onFileBackend.envRefs, DATABASE_URL: from("url"), MY_TOKEN: from("token") },
      secretsRef: { "files:password": from("password") },
    });
    const failed = await stackUntil(scene, "blurting", ({ status }) => status?.lastUpdate?.state === "failed");
    // What it said is told, without the secrets.
    expect(failed.status?.lastUpdate?.message).toContain("no entry with [secret]");
    const { client, namespace } = scene;
    const sinks = {
      operator: await scene.operator.log(),
      agent: await agentLog(scene, "blurting"),
      events: await kubectl(["get", "events", ...at(scene), "--output=json"]),
      stack: JSON.stringify(await getStack(scene, "blurting")),
      updates: JSON.stringify((await client.list(updates, { namespace })).items),
      workspaces: JSON.stringify((await client.list(workspaces, { namespace })).items),
      metrics: await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text(),
    };
    // As in the Go operator, for dashboards that are there.
    expect(sinks.metrics).toContain(`stacks_failing{namespace="${namespace}",name="blurting"} 1\n`);
    for (const controller of ["stack", "workspace", "update", "program"].map((kind) => `${kind}-controller`)) {
      expect(sinks.metrics).toContain(
        `controller_runtime_reconcile_total{controller="${controller}",result="success"}`,
      );
      expect(sinks.metrics).toContain(`workqueue_depth{name="${controller}",controller="${controller}"}`);
    }
    for (const [sink, text] of Object.entries(sinks)) {
      expect({ sink, isEmpty: text.length < 100 }).toEqual({ sink, isEmpty: false });
      for (const secret of Object.values(data)) {
        for (const form of [secret, btoa(secret)]) {
          expect({ sink, form, isTold: text.includes(form) }).toEqual({ sink, form, isTold: false });
        }
      }
    }
  },
  slow,
);

test.concurrent(
  "Stacks whose pods do not all find room finish one after the other",
  async () => {
    scene.defer(() => slots(null));
    await slots("2");
    const names = ["a", "b", "c", "d", "e"].map((letter) => `crowd-${letter}`);
    const container = { resources: { limits: { [slot]: "1" }, requests: { [slot]: "1" } } };
    await Promise.all(names.map((name) => deploy(name, { repository: "plain" }, container)));
    await Promise.all(names.map((name) => stackUntil(scene, name, isReady)));
  },
  slow,
);

async function certificateOf(workspace: string): Promise<Certificate> {
  const ref = { namespace: scene.namespace, name: `${workspace}-workspace-tls` };
  const { data = {} }: Known<Secret> = await scene.client.get(builtin.secrets, ref);
  const text = (key: string): string => Buffer.from(data[key] ?? "", "base64").toString();
  return { ca: text("ca.crt"), cert: text("tls.crt"), key: text("tls.key") };
}

/** How many the node is said to have; none when null. */
async function slots(count: string | null): Promise<void> {
  const patch = JSON.stringify({ status: { capacity: { [slot]: count }, allocatable: { [slot]: count } } });
  const nodes = (await kubectl(["get", "nodes", "--output=name"])).trim().split("\n");
  for (const node of nodes) await kubectl(["patch", node, "--subresource=status", "--type=merge", "--patch", patch]);
}

interface Wish {
  /** The Stack's own name when absent. */
  readonly repository?: string;
  readonly [field: string]: unknown;
}

async function deploy(name: string, { repository = name, ...spec }: Wish, container: object = {}): Promise<void> {
  const basicAuth = {
    userName: fromSecret("git-credentials", "user"),
    password: fromSecret("git-credentials", "password"),
  };
  const source = { projectRepo: scene.git.url(repository), branch: "main", gitAuth: { basicAuth } };
  await applyTo(scene, stackOf(name, { workspaceTemplate: podWith({ container }), ...source, ...spec }));
}
