import { expect, test } from "bun:test";

import { replicasOf, type Pod } from "./operator-pods.ts";

const pod = (name: string, status: Pod["status"]): Pod => ({
  metadata: { name, namespace: "pulumi" },
  spec: { containers: [{ image: "operator:3.0.0" }] },
  ...(status && { status }),
});

const ready: Pod["status"] = { phase: "Running", containerStatuses: [{ ready: true, restartCount: 2 }] };

const states: readonly (readonly [state: string, status: Pod["status"]])[] = [
  ["ready", ready],
  ["not ready", { phase: "Running", containerStatuses: [{ ready: false }] }],
  ["Pending", { phase: "Pending" }],
  [
    "CrashLoopBackOff",
    { phase: "Running", containerStatuses: [{ state: { waiting: { reason: "CrashLoopBackOff" } } }] },
  ],
  ["Unknown", undefined],
];

test.each(states)("the state of a replica: %s", (state, status) => {
  expect(replicasOf([pod("a", status)], "")).toMatchObject([{ state, isReady: state === "ready" }]);
});

test("the leader is the replica whose name the Lease has", () => {
  const replicas = replicasOf([pod("operator-2", ready), pod("operator-1", ready)], "operator-1_5f2c");
  expect(replicas.map(({ name, isLeader }) => [name, isLeader])).toEqual([
    ["operator-1", true],
    ["operator-2", false],
  ]);
  expect(replicas[0]).toMatchObject({ restarts: 2, image: "operator:3.0.0" });
});
