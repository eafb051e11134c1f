import { describe, expect, test } from "bun:test";

import { checkPlans } from "../testing/cases.ts";
import {
  given,
  notReady,
  pod,
  podDown,
  ready,
  set,
  update,
  view,
  withoutAddress,
  type Trait,
} from "../testing/views.ts";
import { planWorkspace } from "./index.ts";

const conflict = given({ workspaceClass: { kind: "conflict", names: ["a", "b", "c"] } });
const unknown = given({ workspaceClass: { kind: "unknown" } });
const classed = (part: object): Trait =>
  given({ workspaceClass: { kind: "one", name: "teams", uid: "c1", spec: { namespaceSelector: {}, ...part } } });
const cached = classed({ caches: { size: "1Gi" } });
const unschedulable = podDown("no node", { isUnschedulable: true });

describe("a workspace whose namespace two classes select", () => {
  checkPlans({
    "is stalled, with their names": {
      when: [conflict],
      outcome: "misconfigured",
      reason: "WorkspaceClassConflict",
      contains: "WorkspaceClasses a, b and c all select the namespace team",
      requeueAfterMs: 300_000,
    },
    "is stalled also if it is ready and an Update waits": {
      when: [ready(), set(), pod(), update("waiting"), conflict],
      outcome: "misconfigured",
    },
    "lets a running Update finish": { when: [ready(), set(), pod(), update("onPod"), conflict], outcome: "unchanged" },
    "stays idle until something wakes it": {
      when: [ready(), withoutAddress, set({ replicas: 0 }), conflict],
      steps: ["forgetPreparation"],
      outcome: "idle",
    },
  });
});

describe("a workspace whose namespace is not in the cache yet", () => {
  checkPlans({
    "gets no pod, because limits may apply": { when: [unknown], outcome: "waiting", requeueAfterMs: 5000 },
    "keeps its status": { when: [ready(), set(), pod(), unknown], outcome: "unchanged" },
  });
});

describe("the claim of a class with caches", () => {
  checkPlans({
    "is created before the pod": { when: [cached], steps: ["ensureCacheClaim"], outcome: "unchanged" },
    "is created once in a pass": {
      when: [cached, given({ hasCacheClaim: true })],
      steps: ["applyObjects"],
      outcome: "waiting",
    },
    "is not checked while the pod is as it should be": {
      when: [notReady(), set(), pod(), cached],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "is created again for a pod that no node can take": {
      when: [notReady(), set(), unschedulable, cached],
      steps: ["ensureCacheClaim"],
      outcome: "unchanged",
    },
    "is checked again later if the pod stays unschedulable": {
      when: [notReady(), set(), unschedulable, cached, given({ hasCacheClaim: true })],
      outcome: "waiting",
      requeueAfterMs: 15_000,
    },
    "is not created for a class without caches": { when: [classed({})], steps: ["applyObjects"], outcome: "waiting" },
  });

  test("is in the namespace of the workspace", () => {
    const claim = { metadata: { name: "pulumi-cache-teams", namespace: "team" } };
    expect(planWorkspace(view(cached)).steps).toMatchObject([{ kind: "ensureCacheClaim", claim }]);
  });
});
