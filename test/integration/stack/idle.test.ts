/** A thousand idle Stacks cause no write and no update, also after a restart. */
import { expect, test } from "bun:test";
import { stackKind, type Stack } from "@pko/api";
import {
  connect,
  eventRecorder,
  manualClock,
  metricsRegistry,
  reflector,
  timestamp,
  type ManualClock,
  type Registry,
} from "@pko/kube";
import {
  approvalIndexers,
  approvals,
  jittered,
  ownedUpdateIndexers,
  programs,
  stackController,
  stackIndexers,
  stacks,
  updates,
  workspaces,
  type ListRefs,
} from "@pko/operator";
import { faultProxy, storeObjects, testNamespace, waitFor, type FaultProxy } from "@pko/testkit";

import { OperatorRights } from "../../rights/operator-rights.ts";
import { policyInForce } from "../approvals/decide.ts";
import { apiServerWithApi } from "../api/install.ts";

const count = 1000;
const head = "c".repeat(40);
const noon = Date.UTC(2030, 0, 1, 12);

/** After a success: half follow a branch, half a Program, and some of each resync every hour. */
function idleStack(index: number, namespace: string): Stack {
  const isGit = index % 2 === 0;
  const revision = isGit ? head : "1";
  const isResynced = index % 5 === 0;
  const time = timestamp(noon - 60_000);
  const uid = crypto.randomUUID();
  const resyncTime = timestamp(noon - 60_000 + jittered(3_600_000, uid));
  return {
    apiVersion: stackKind.apiVersion,
    kind: stackKind.kind,
    metadata: {
      name: `s${index}`,
      namespace,
      uid,
      generation: 1,
      creationTimestamp: time,
      finalizers: ["finalizer.stack.pulumi.com"],
    },
    spec: {
      stack: "dev",
      ...(isGit
        ? { projectRepo: `https://host/${index % 10}.git`, branch: "main" }
        : { programRef: { name: "program" } }),
      ...(isResynced && { continueResyncOnCommitMatch: true, resyncFrequencySeconds: 3600 }),
    },
    status: {
      ...(isResynced && { next: { what: "the periodic resync", time: resyncTime } }),
      observedGeneration: 1,
      lastUpdate: {
        name: `s${index}-update`,
        type: "up",
        state: "succeeded",
        generation: 1,
        lastAttemptedCommit: revision,
        lastSuccessfulCommit: revision,
        lastResyncTime: time,
        failures: 0,
      },
      conditions: [
        {
          type: "Ready",
          status: "True",
          reason: "ProcessingCompleted",
          message: "The last update succeeded.",
          lastTransitionTime: time,
          observedGeneration: 1,
        },
      ],
    },
  };
}

interface Process {
  readonly metrics: Registry;
  readonly polls: () => number;
  readonly reconciles: () => number;
  stop(): Promise<void>;
}

function startOperator(proxy: FaultProxy, namespace: string, clock: ManualClock): Process {
  const client = connect(proxy.credentials);
  const scope = { namespaces: [namespace] };
  const reflectors = {
    stacks: reflector(client, stacks, { ...scope, indexers: stackIndexers }),
    workspaces: reflector(client, workspaces, scope),
    updates: reflector(client, updates, { ...scope, indexers: ownedUpdateIndexers }),
    programs: reflector(client, programs, scope),
    approvals: reflector(client, approvals, { ...scope, indexers: approvalIndexers }),
  };
  const metrics = metricsRegistry();
  let polls = 0;
  const listRefs: ListRefs = async () => {
    polls++;
    return { kind: "listed", commits: new Map([["refs/heads/main", head]]) };
  };
  const running = stackController({
    client,
    reflectors,
    events: eventRecorder({ client, component: "test" }),
    git: { policy: { allowHttp: false, allowedAddresses: [] } },
    listRefs,
    approvalPolicy: policyInForce,
    namespaces: [namespace],
    metrics,
    clock,
  });
  const stop = new AbortController();
  const all = Promise.all([
    ...Object.values(reflectors).map((each) => each.run(stop.signal)),
    running.run({ stop: stop.signal, kill: stop.signal }),
  ]);
  const reconciles = (): number =>
    [...metrics.expose().matchAll(/^controller_runtime_reconcile_total\{[^}]*\} (\d+)/gm)].reduce(
      (sum, [, value]) => sum + Number(value),
      0,
    );
  return {
    metrics,
    polls: () => polls,
    reconciles,
    async stop() {
      stop.abort();
      await all;
    },
  };
}

test("1,000 idle Stacks: no write in ten minutes, none after a restart", async () => {
  const server = await apiServerWithApi();
  await using place = await testNamespace({ server });
  const { client, name: namespace } = place;
  const { apiVersion, kind } = { apiVersion: "pulumi.com/v1", kind: "Program" };
  await client.create(programs, { apiVersion, kind, metadata: { name: "program", namespace }, program: {} });
  const idle = Array.from({ length: count }, (_, index) => idleStack(index, namespace));
  await storeObjects(
    server.etcdUrl,
    idle.map((object) => ({ resource: stacks, object })),
  );
  await using rights = await OperatorRights.in(place);
  await using proxy = await faultProxy(rights.credentials);
  const clock = manualClock(noon);
  for (const life of ["first", "second"]) {
    const startedAt = performance.now();
    const operator = startOperator(proxy, namespace, clock);
    await waitFor(() => operator.reconciles() >= count, { timeoutMs: 60_000 });
    await clock.advance(100);
    // Stacks that follow a branch are reconciled once more after their repository was polled.
    await waitFor(() => operator.reconciles() >= count * 1.5, { timeoutMs: 60_000 });
    const reconciledMs = Math.round(performance.now() - startedAt);
    const reconciles = operator.reconciles();
    await clock.advance(10 * 60_000);
    // A change now is reconciled after everything that was due in these ten minutes.
    const patch = { type: "merge", body: { metadata: { annotations: { life } } } } as const;
    await client.patch(stacks, { namespace, name: "s1" }, { patch });
    await waitFor(() => operator.reconciles() > reconciles, { what: "the changed Stack to be reconciled" });
    await operator.stop();
    const idleReconciles = operator.reconciles() - reconciles - 1;
    expect(proxy.writes.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
    expect(proxy.requests.filter(({ status }) => status === 403)).toEqual([]);
    expect(idleReconciles).toBe(0);
    expect(operator.polls()).toBeLessThanOrEqual(5 * 11);
    console.log(
      `    ${life} process: reconciled all in ${reconciledMs} ms, ${operator.polls()} polls of 5 repositories`,
    );
  }
}, 240_000);
