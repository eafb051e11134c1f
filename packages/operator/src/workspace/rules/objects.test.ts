import { describe } from "bun:test";

import { checkPlans } from "../testing/cases.ts";
import {
  given,
  input,
  notReady,
  pod,
  podDown,
  ready,
  set,
  unobservedSet,
  update,
  type Trait,
} from "../testing/views.ts";

/** As after a restart of the operator. */
const withoutMemory: Trait = (each) => {
  const { written: _, ...rest } = each;
  return rest;
};

const foreignService = {
  kind: "foreign",
  occupant: { kind: "Service", namespace: "team", name: "web-workspace" },
} as const;

const ownedByStack: Trait = (each) => {
  const owner = { apiVersion: "pulumi.com/v1", kind: "Stack", uid: "1" };
  const ownerReferences = [
    { ...owner, name: "other" },
    { ...owner, name: "dev", controller: true },
  ];
  return { ...each, workspace: { ...each.workspace, metadata: { ...each.workspace.metadata, ownerReferences } } };
};
const missingSecret = input({ missing: ["there is no Secret a"] });

describe("the objects", () => {
  checkPlans({
    "are all applied if none exists": {
      when: [],
      steps: ["applyObjects"],
      outcome: "waiting",
      contains: "being created",
    },
    "are not applied if another owner has one of their names": {
      when: [given({ certificate: "missing", occupied: [foreignService] })],
      outcome: "blocked",
      contains: "Service team/web-workspace (without an owner) already exists",
      requeueAfterMs: 15_000,
    },
    "are not applied if another owner has one of their names, and the Stack of the workspace is reported": {
      when: [ownedByStack, given({ occupied: [foreignService] })],
      outcome: "blocked",
      contains: "was not created for Stack dev, so nothing was changed",
    },
    "are applied if the template has changed": {
      when: [notReady(), set({ builtHash: "old" }), pod()],
      steps: ["applyObjects"],
      outcome: "rolling",
      contains: "being replaced",
    },
    "are applied if the template has changed and the pod is terminating": {
      when: [notReady(), set({ builtHash: "old" }), pod({ isDeleting: true })],
      steps: ["applyObjects"],
      outcome: "waiting",
    },
    "are restored if another client has changed them": {
      when: [ready(), set({ generation: 2 }), pod()],
      steps: ["restoreStatefulSet"],
      outcome: "unchanged",
      requeueAfterMs: 0,
    },
    "are restored if another client has broken them, without waiting for the pod": {
      when: [notReady(), set({ generation: 2 }), podDown("no such image")],
      steps: ["restoreStatefulSet"],
      outcome: "unchanged",
    },
    "are restored after a restart: a change may have been missed": {
      when: [ready(), set(), pod(), withoutMemory],
      steps: ["restoreStatefulSet"],
      outcome: "unchanged",
    },
    "are restored although there is no status yet": {
      when: [set(), withoutMemory],
      steps: ["restoreStatefulSet"],
      outcome: "waiting",
    },
    "are not written twice while the store does not show our own change": {
      when: [ready(), set(), pod(), given({ written: { uid: "s1", generation: 2 } })],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "are restored if the StatefulSet is not the one that was written": {
      when: [ready(), set(), pod(), given({ written: { uid: "former", generation: 2 } })],
      steps: ["restoreStatefulSet"],
      outcome: "unchanged",
    },
    "are not restored while an Update runs": {
      when: [ready(), set({ generation: 2 }), pod(), update("onPod")],
      outcome: "unchanged",
    },
    "are not restored while the StatefulSet is being deleted": {
      when: [notReady(), set({ generation: 2, isDeleting: true }), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "are not restored while a Secret that the pod has read does not exist: another pod could not start": {
      when: [ready(), missingSecret, set({ generation: 2 }), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "are not created again for a pod that is up while a Secret that it has read does not exist": {
      when: [notReady(), missingSecret, pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "are applied immediately if nothing waits for the pod": {
      when: [ready(), set({ builtHash: "old" }), pod()],
      steps: ["applyObjects"],
      outcome: "rolling",
    },
    "are not applied before the status reports it, if a waiting Update may be about to start": {
      when: [ready(), set({ builtHash: "old" }), pod(), update("waiting")],
      outcome: "rolling",
      contains: "about to be replaced",
      requeueAfterMs: 2000,
    },
    "are not applied immediately after the status reported it": {
      when: [notReady(1, "RollingUpdate"), set({ builtHash: "old" }), pod(), update("waiting")],
      outcome: "rolling",
      contains: "about to be replaced",
    },
    "are applied when the status has reported it for two seconds": {
      when: [notReady(2, "RollingUpdate"), set({ builtHash: "old" }), pod(), update("waiting")],
      steps: ["applyObjects"],
      outcome: "rolling",
    },
    "are applied immediately if the pod of the old template is not up": {
      when: [ready(), set({ builtHash: "old" }), podDown(), update("waiting")],
      steps: ["applyObjects"],
      outcome: "rolling",
    },
    "wait for the deletion of a former StatefulSet": {
      when: [set({ builtHash: "old", isDeleting: true })],
      outcome: "waiting",
      contains: "former StatefulSet",
    },
    "make the pod unusable until the StatefulSet's controller has observed the new template": {
      when: [notReady(60, "RollingUpdate"), unobservedSet, pod()],
      outcome: "rolling",
    },
    "of a first pod that was observed before them are reported like before": {
      when: [notReady(), unobservedSet, pod()],
      outcome: "waiting",
      contains: "being created",
    },
    "are not observed yet, and there is no pod": { when: [notReady(), unobservedSet], outcome: "waiting" },
  });
});
