/** Suspended Stacks: one by its spec, and all by an annotation of the Lease of a running operator. */
import { expect, test } from "bun:test";
import { leaseName, suspendAnnotation } from "@pko/api";
import { builtin, logger, timestamp, type Client } from "@pko/kube";
import { updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { operator } from "../../../packages/operator/src/operator.ts";
import { parseOptions } from "../../../packages/operator/src/options.ts";
import { gitServer, type GitServer } from "./git-server.ts";
import { condition, reasonOf, StackScene, testTimeoutMs } from "./scene.ts";

const hour = 3_600_000;

async function eventsAbout(scene: StackScene, name: string): Promise<string[]> {
  const { items } = await scene.client.list(builtin.events, { namespace: scene.namespace });
  const ours = items.filter(({ regarding }) => regarding?.name === name).map(({ reason = "" }) => reason);
  return ours.filter((reason) => reason === "StackSuspended" || reason === "StackResumed").toSorted();
}

const isSuspended = async (scene: StackScene, name: string) =>
  await scene.becomes(
    name,
    "suspended",
    (stack) => reasonOf(stack) === "Suspended" && stack.status?.observedGeneration === stack.metadata.generation,
  );

/** Polled repositories and Secrets: those of `web`, and those of `api`, which is never suspended. */
async function twoStacks(scene: StackScene) {
  const [web, api] = [gitServer(), gitServer()];
  const reads: string[] = [];
  const find: Client["find"] = async (resource, ref, options) => {
    reads.push(ref.name);
    return await scene.rights.client.find(resource, ref, options);
  };
  const specOf = (name: string, { url }: GitServer) => ({
    projectRepo: url,
    branch: "main",
    secretsRef: { password: { type: "Secret", secret: { name: `${name}-secret`, key: "password" } } },
  });
  for (const name of ["web-secret", "api-secret"]) {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name, namespace: scene.namespace } };
    await scene.client.apply(builtin.secrets, { ...secret, stringData: { password: "a" } }, { fieldManager: "test" });
  }
  /** Returns when everything that is polled has been. */
  const polled = async (): Promise<void> => {
    for (let round = 0; round < 2; round++) {
      const [requests, secrets] = [api.requests.length, countOf(reads, "api-secret")];
      scene.jump(hour);
      const isPolled = (): boolean => api.requests.length > requests && countOf(reads, "api-secret") > secrets;
      await waitFor(isPolled, { what: "the other Stack to be polled", timeoutMs: 45_000 });
    }
  };
  const specs = { web: specOf("web", web), api: specOf("api", api) };
  return { web, api, specs, reads, polled, client: { ...scene.rights.client, find } };
}

const countOf = (values: readonly string[], wanted: string): number =>
  values.filter((value) => value === wanted).length;

test(
  "the repository and the Secrets of a suspended Stack are not read, also after a restart, and it catches up when it is resumed",
  async () => {
    await using scene = await StackScene.open("without operator");
    const { web, api, specs, reads, polled, client } = await twoStacks(scene);
    using _web = web;
    using _api = api;
    const first = web.commit();
    const other = api.commit();
    scene.start({ client });
    await scene.stack("web", specs.web);
    await scene.stack("api", specs.api);
    await Promise.all([scene.isReady("web", first), scene.isReady("api", other)]);

    await scene.stack("web", { ...specs.web, suspend: true });
    await isSuspended(scene, "web");
    web.requests.length = 0;
    reads.length = 0;
    const second = web.commit();
    await scene.annotate("web", { "pulumi.com/reconciliation-request": "now" });
    await polled();
    await scene.stop();
    scene.start({ client });
    await scene.operator.synced;
    await polled();
    await isSuspended(scene, "web");
    expect([web.requests, countOf(reads, "web-secret"), countOf(scene.runs, `up@${second}`)]).toEqual([[], 0, 0]);
    expect(await eventsAbout(scene, "web")).toEqual(["StackSuspended"]);

    await scene.stack("web", { ...specs.web, suspend: false });
    await scene.isReady("web", second);
    await waitFor(async () => (await eventsAbout(scene, "web")).length === 2, {
      what: "the event that follows the status",
    });
    expect(await eventsAbout(scene, "web")).toEqual(["StackResumed", "StackSuspended"]);
    expect(scene.operator.metrics.expose()).toContain(
      `stacks_suspended{namespace="${scene.namespace}",name="web"} 0\n`,
    );
  },
  testTimeoutMs,
);

test(
  "an Update that has not started is withdrawn; a running one finishes, and its result is recorded",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    scene.simulator.script.update = () => ({ end: "never" });
    await scene.stack("web");
    await scene.stack("api");
    const updateOf = async (name: string): Promise<string> =>
      (await scene.becomes(name, "updating", ({ status }) => Boolean(status?.currentUpdate))).status?.currentUpdate
        ?.name ?? "";
    const [, running] = await Promise.all([updateOf("web"), updateOf("api")]);
    const ref = { namespace: scene.namespace, name: running };
    const body = { status: { startTime: timestamp(scene.clock.now()) } };
    await scene.client.patch(updates, ref, { patch: { type: "merge", body }, subresource: "status" });
    await scene.stack("web", { suspend: true });
    await scene.stack("api", { suspend: true });
    const { status } = await isSuspended(scene, "web");
    expect(status?.lastUpdate?.message).toBe("deleted before it started");
    await scene.becomes("api", "running", ({ status }) =>
      Boolean(status?.conditions?.[0]?.message.includes("nothing starts when it ends, because the Stack is suspended")),
    );
    scene.simulator.script.update = () => ({ end: "succeeded" });
    expect((await isSuspended(scene, "api")).status?.lastUpdate).toMatchObject({ name: running, state: "succeeded" });
    expect(scene.runs).toHaveLength(2);
  },
  testTimeoutMs,
);

test(
  "a suspended Stack that is deleted waits with its destroy, and is removed at once without one",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("kept", { destroyOnFinalize: true });
    await scene.stack("removed");
    await Promise.all([scene.isReady("kept"), scene.isReady("removed")]);
    await scene.stack("kept", { destroyOnFinalize: true, suspend: true });
    await scene.stack("removed", { suspend: true });
    await Promise.all([isSuspended(scene, "kept"), isSuspended(scene, "removed")]);
    await scene.delete("removed");
    await scene.isDeleted("removed");
    await scene.delete("kept");
    await scene.becomes("kept", "waiting", ({ status }) =>
      Boolean(status?.conditions?.[0]?.message.includes("its resources are not destroyed")),
    );
    expect(scene.runs.filter((run) => run.startsWith("destroy"))).toEqual([]);
    await scene.stack("kept", { destroyOnFinalize: true, suspend: false });
    await scene.isDeleted("kept");
    expect(scene.runs.filter((run) => run.startsWith("destroy"))).toHaveLength(1);
  },
  testTimeoutMs,
);

test(
  "an annotation of the Lease suspends all Stacks of a running operator, and its removal resumes them",
  async () => {
    using server = gitServer();
    server.commit();
    await using scene = await StackScene.open("without operator");
    const { namespace } = scene;
    const lease = { namespace, name: leaseName };
    const annotate = async (value: string | null): Promise<void> => {
      const body = { metadata: { annotations: { [suspendAnnotation]: value } } };
      await scene.client.patch(builtin.leases, lease, { patch: { type: "merge", body } });
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
    const manager = await operator({ options, credentials: scene.rights.credentials, log });
    const stop = new AbortController();
    const running = manager.run(stop.signal);
    try {
      await scene.stack("web", { projectRepo: server.url, branch: "main", suspend: false });
      await scene.stack("api", { projectRepo: server.url, branch: "main" });
      const names = ["web", "api"];
      const are = async (what: string, ...reasons: readonly string[]): Promise<void> => {
        // A Stack that is ready has no other reason.
        const is = (stack: Parameters<typeof reasonOf>[0]): boolean =>
          reasons.includes(reasonOf(stack) || (condition(stack, "Ready")?.reason ?? ""));
        await Promise.all(names.map((name) => scene.becomes(name, what, is)));
      };
      await are("processed", "StackProcessing", "ProcessingCompleted");
      await annotate("incident 42");
      await are("suspended", "Suspended");
      const { status } = await scene.get("web");
      expect(status?.conditions?.[0]?.message).toContain("because the operator is suspended");
      const { port } = { port: manager.ports.metrics };
      expect(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).toContain("operator_suspended 1\n");
      // The leader renews its Lease several times meanwhile.
      const renewals = async (): Promise<string> =>
        (await scene.client.get(builtin.leases, lease)).spec?.renewTime ?? "";
      for (let count = 0; count < 2; count++) {
        // A poll that was in progress when the operator was suspended has ended by the first renewal.
        if (count === 1) server.requests.length = 0;
        const before = await renewals();
        await waitFor(async () => (await renewals()) !== before, {
          what: "the Lease to be renewed",
          timeoutMs: 45_000,
        });
      }
      expect((await scene.client.get(builtin.leases, lease)).metadata.annotations).toMatchObject({
        [suspendAnnotation]: "incident 42",
      });
      await are("still suspended", "Suspended");
      expect(server.requests).toEqual([]);
      await annotate(null);
      await are("resumed", "StackProcessing", "ProcessingCompleted");
      await waitFor(() => server.requests.length > 0, { what: "the repository to be polled", timeoutMs: 45_000 });
      await waitFor(async () => (await eventsAbout(scene, "api")).length === 2, { timeoutMs: 45_000 });
      expect(await eventsAbout(scene, "api")).toEqual(["StackResumed", "StackSuspended"]);
    } finally {
      stop.abort();
      await running;
    }
  },
  testTimeoutMs * 2,
);
