/** Suspended Stacks: one by its spec, and all by an annotation of the Lease of a running operator. */
import { expect, test } from "bun:test";
import { leaseName, suspendAnnotation } from "@pko/api";
import { builtin, logger, timestamp, type Client } from "@pko/kube";
import { updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { operator } from "../../../packages/operator/src/operator.ts";
import { parseOptions } from "../../../packages/operator/src/options.ts";
import { gitServer, type GitServer } from "./git-server.ts";
import { reasonOf, Stage, testTimeoutMs } from "./harness.ts";

const hour = 3_600_000;

async function eventsAbout(stage: Stage, name: string): Promise<string[]> {
  const { items } = await stage.client.list(builtin.events, { namespace: stage.namespace });
  const ours = items.filter(({ regarding }) => regarding?.name === name).map(({ reason = "" }) => reason);
  return ours.filter((reason) => reason === "StackSuspended" || reason === "StackResumed").toSorted();
}

const isSuspended = async (stage: Stage, name: string) =>
  await stage.becomes(
    name,
    "suspended",
    (stack) => reasonOf(stack) === "Suspended" && stack.status?.observedGeneration === stack.metadata.generation,
  );

/** Polled repositories and Secrets: those of `web`, and those of `api`, which is never suspended. */
async function twoStacks(stage: Stage) {
  const [web, api] = [gitServer(), gitServer()];
  const reads: string[] = [];
  const find: Client["find"] = async (resource, ref, options) => {
    reads.push(ref.name);
    return await stage.rights.client.find(resource, ref, options);
  };
  const specOf = (name: string, { url }: GitServer) => ({
    projectRepo: url,
    branch: "main",
    secretsRef: { password: { type: "Secret", secret: { name: `${name}-secret`, key: "password" } } },
  });
  for (const name of ["web-secret", "api-secret"]) {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name, namespace: stage.namespace } };
    await stage.client.apply(builtin.secrets, { ...secret, stringData: { password: "a" } }, { fieldManager: "test" });
  }
  /** Returns when everything that is polled has been. */
  const polled = async (): Promise<void> => {
    for (let round = 0; round < 2; round++) {
      const [requests, secrets] = [api.requests.length, countOf(reads, "api-secret")];
      stage.jump(hour);
      const isPolled = (): boolean => api.requests.length > requests && countOf(reads, "api-secret") > secrets;
      await waitFor(isPolled, { what: "the other Stack to be polled", timeoutMs: 20_000 });
    }
  };
  const specs = { web: specOf("web", web), api: specOf("api", api) };
  return { web, api, specs, reads, polled, client: { ...stage.rights.client, find } };
}

const countOf = (values: readonly string[], wanted: string): number =>
  values.filter((value) => value === wanted).length;

test(
  "the repository and the Secrets of a suspended Stack are not read, also after a restart, and it catches up when it is resumed",
  async () => {
    await using stage = await Stage.set("empty");
    const { web, api, specs, reads, polled, client } = await twoStacks(stage);
    using _web = web;
    using _api = api;
    const first = web.commit();
    const other = api.commit();
    stage.start({ client });
    await stage.stack("web", specs.web);
    await stage.stack("api", specs.api);
    await Promise.all([stage.isReady("web", first), stage.isReady("api", other)]);

    await stage.stack("web", { ...specs.web, suspend: true });
    await isSuspended(stage, "web");
    web.requests.length = 0;
    reads.length = 0;
    const second = web.commit();
    await stage.annotate("web", { "pulumi.com/reconciliation-request": "now" });
    await polled();
    await stage.stop();
    stage.start({ client });
    await stage.operator.synced;
    await polled();
    await isSuspended(stage, "web");
    expect([web.requests, countOf(reads, "web-secret"), countOf(stage.runs, `up@${second}`)]).toEqual([[], 0, 0]);
    expect(await eventsAbout(stage, "web")).toEqual(["StackSuspended"]);

    await stage.stack("web", { ...specs.web, suspend: false });
    await stage.isReady("web", second);
    expect(await eventsAbout(stage, "web")).toEqual(["StackResumed", "StackSuspended"]);
    expect(stage.operator.metrics.expose()).toContain(
      `stacks_suspended{namespace="${stage.namespace}",name="web"} 0\n`,
    );
  },
  testTimeoutMs,
);

test(
  "an Update that has not started is withdrawn; a running one finishes, and its result is recorded",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    stage.simulator.script.update = () => ({ end: "never" });
    await stage.stack("web");
    await stage.stack("api");
    const updateOf = async (name: string): Promise<string> =>
      (await stage.becomes(name, "updating", ({ status }) => Boolean(status?.currentUpdate))).status?.currentUpdate
        ?.name ?? "";
    const [, running] = await Promise.all([updateOf("web"), updateOf("api")]);
    const ref = { namespace: stage.namespace, name: running };
    const body = { status: { startTime: timestamp(stage.clock.now()) } };
    await stage.client.patch(updates, ref, { patch: { type: "merge", body }, subresource: "status" });
    await stage.stack("web", { suspend: true });
    await stage.stack("api", { suspend: true });
    const { status } = await isSuspended(stage, "web");
    expect(status?.lastUpdate?.message).toBe("deleted before it started");
    await stage.becomes("api", "running", ({ status }) =>
      Boolean(status?.conditions?.[0]?.message.includes("nothing starts when it ends, because the Stack is suspended")),
    );
    stage.simulator.script.update = () => ({ end: "succeeded" });
    expect((await isSuspended(stage, "api")).status?.lastUpdate).toMatchObject({ name: running, state: "succeeded" });
    expect(stage.runs).toHaveLength(2);
  },
  testTimeoutMs,
);

test(
  "a suspended Stack that is deleted waits with its destroy, and is removed at once without one",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    await stage.stack("kept", { destroyOnFinalize: true });
    await stage.stack("removed");
    await Promise.all([stage.isReady("kept"), stage.isReady("removed")]);
    await stage.stack("kept", { destroyOnFinalize: true, suspend: true });
    await stage.stack("removed", { suspend: true });
    await Promise.all([isSuspended(stage, "kept"), isSuspended(stage, "removed")]);
    await stage.delete("removed");
    await stage.isDeleted("removed");
    await stage.delete("kept");
    await stage.becomes("kept", "waiting", ({ status }) =>
      Boolean(status?.conditions?.[0]?.message.includes("its resources are not destroyed")),
    );
    expect(stage.runs.filter((run) => run.startsWith("destroy"))).toEqual([]);
    await stage.stack("kept", { destroyOnFinalize: true, suspend: false });
    await stage.isDeleted("kept");
    expect(stage.runs.filter((run) => run.startsWith("destroy"))).toHaveLength(1);
  },
  testTimeoutMs,
);

test(
  "an annotation of the Lease suspends all Stacks of a running operator, and its removal resumes them",
  async () => {
    using server = gitServer();
    server.commit();
    await using stage = await Stage.set("empty");
    const { namespace } = stage;
    const lease = { namespace, name: leaseName };
    const annotate = async (value: string | null): Promise<void> => {
      const body = { metadata: { annotations: { [suspendAnnotation]: value } } };
      await stage.client.patch(builtin.leases, lease, { patch: { type: "merge", body } });
    };
    const flags = [
      "--leader-elect",
      `--namespace=${namespace}`,
      `--watch-namespaces=${namespace}`,
      "--agent-image=none",
    ];
    const addresses = ["--probe-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"];
    const git = ["--allow-http", "--allow-addresses=127.0.0.1"];
    const options = parseOptions([...flags, ...addresses, ...git], {});
    const log = logger({ level: "error", format: "json" });
    const manager = await operator({ options, credentials: stage.rights.credentials, log });
    const stop = new AbortController();
    const running = manager.run(stop.signal);
    try {
      await stage.stack("web", { projectRepo: server.url, branch: "main", suspend: false });
      await stage.stack("api", { projectRepo: server.url, branch: "main" });
      const names = ["web", "api"];
      const are = async (what: string, reason: string): Promise<void> => {
        await Promise.all(names.map((name) => stage.becomes(name, what, (stack) => reasonOf(stack) === reason)));
      };
      await are("processing", "StackProcessing");
      await annotate("incident 42");
      await are("suspended", "Suspended");
      server.requests.length = 0;
      const { status } = await stage.get("web");
      expect(status?.conditions?.[0]?.message).toContain("because the operator is suspended");
      const { port } = { port: manager.ports.metrics };
      expect(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).toContain("operator_suspended 1\n");
      // The leader renews its Lease several times meanwhile.
      const renewals = async (): Promise<string> =>
        (await stage.client.get(builtin.leases, lease)).spec?.renewTime ?? "";
      for (let count = 0; count < 2; count++) {
        const before = await renewals();
        await waitFor(async () => (await renewals()) !== before, {
          what: "the Lease to be renewed",
          timeoutMs: 20_000,
        });
      }
      expect((await stage.client.get(builtin.leases, lease)).metadata.annotations).toEqual({
        [suspendAnnotation]: "incident 42",
      });
      await are("still suspended", "Suspended");
      expect(server.requests).toEqual([]);
      await annotate(null);
      await are("resumed", "StackProcessing");
      await waitFor(() => server.requests.length > 0, { what: "the repository to be polled", timeoutMs: 20_000 });
      await waitFor(async () => (await eventsAbout(stage, "api")).length === 2, { timeoutMs: 20_000 });
      expect(await eventsAbout(stage, "api")).toEqual(["StackResumed", "StackSuspended"]);
    } finally {
      stop.abort();
      await running;
    }
  },
  testTimeoutMs * 2,
);
