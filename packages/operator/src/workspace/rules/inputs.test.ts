import { describe, expect, test } from "bun:test";

import type { Step } from "../steps.ts";
import { checkPlans } from "../testing/cases.ts";
import {
  ago,
  changed,
  deleted,
  given,
  input,
  notReady,
  now,
  pod,
  podDown,
  ready,
  retryAt,
  set,
  specified,
  update,
  view,
  without,
  withoutAddress,
  type Trait,
} from "../testing/views.ts";
import type { WorkspaceView } from "../view.ts";
import { planWorkspace } from "./index.ts";

const unread = without("inputs");
const idle: Trait[] = [ready(5000), withoutAddress, set({ replicas: 0 })];
const backedOff: Trait[] = [notReady(999, "InstallationFailed"), set({ replicas: 0, backedOffGeneration: 2 })];
const lost = { namespace: "team", name: "web-workspace-0", node: "worker-2", since: ago(300) };
const forget = ["forgetPreparation"] as const;

describe("the inputs", () => {
  const read = { steps: ["readInputs"], outcome: "unchanged" } as const;
  checkPlans({
    "are read for a new workspace": { when: [unread], ...read },
    "are read while the pod is up": { when: [ready(), set(), pod(), unread], ...read },
    "are read before the idle timeout applies, because state may be lost with the pod": {
      when: [ready(9999), set(), pod(), unread],
      ...read,
    },
    "are read when an Update wakes the workspace": { when: [...idle, update("waiting"), unread], ...read },
    "are read when a backed off preparation is due": { when: [...backedOff, retryAt(now), unread], ...read },
    "are read for an Update that the agent cannot start": {
      when: [ready(), set(), pod(), update("onPod", { isUnprepared: true }), unread],
      ...read,
    },
    "are read if the pod of an Update stays down": {
      when: [notReady(300), set(), podDown("no memory"), update("onPod"), unread],
      ...read,
    },
    "are not read while the workspace is idle": { when: [...idle, unread], steps: forget, outcome: "idle" },
    "are not read while it is backed off": {
      when: [...backedOff, retryAt(now + 1), unread],
      steps: forget,
      outcome: "unchanged",
    },
    "are not read while an Update runs": {
      when: [ready(), set(), pod(), update("onPod"), unread],
      outcome: "unchanged",
    },
    "are not read while the node may be lost": {
      when: [notReady(), set(), pod({ overdue: lost }), unread],
      outcome: "nodeLost",
    },
    "are not read for an invalid spec": { when: [specified({ git: {} }), unread], outcome: "misconfigured" },
    "are not read for a deleted workspace": {
      when: [deleted, set(), pod(), unread],
      steps: forget,
      outcome: "deleting",
    },
  });
});

describe("the certificate of a pod", () => {
  const assess = { steps: ["assessCertificate"], outcome: "unchanged" } as const;
  const issue = { steps: ["issueCertificate"], outcome: "unchanged" } as const;
  const expiring = given({ certificate: "expiring" });
  checkPlans({
    "is checked in every pass, before anything else": {
      when: [ready(), set(), pod(), without("certificate", "inputs")],
      ...assess,
    },
    "is checked while an Update runs": {
      when: [ready(), set(), pod(), update("onPod"), without("certificate")],
      ...assess,
    },
    "is checked although the spec is invalid": {
      when: [specified({ git: {} }), set(), pod(), without("certificate")],
      ...assess,
    },
    "is checked while the pod of an idle workspace terminates": {
      when: [...idle, pod({ isDeleting: true }), without("certificate")],
      ...assess,
    },
    "is not checked for a deleted workspace": {
      when: [deleted, set(), pod(), without("certificate")],
      steps: forget,
      outcome: "deleting",
    },
    "is renewed before a prepared workspace is checked": { when: [expiring, ready(), set(), pod()], ...issue },
    "is renewed while the pod is not up": { when: [expiring, notReady(), set(), podDown()], ...issue },
    "is renewed while an Update runs, if the CA was replaced": {
      when: [given({ certificate: "issuerReplaced" }), ready(), set(), pod(), update("onPod")],
      ...issue,
    },
    "is renewed while a new spec waits for an Update": {
      when: [expiring, ready(), changed, set(), pod(), update("onPod")],
      ...issue,
    },
    "is renewed although the spec is invalid": {
      when: [specified({ git: {} }), given({ certificate: "trustOutdated" }), set(), pod(), update("onPod")],
      ...issue,
    },
    "is kept if it is valid": { when: [ready(), set(), pod(), update("onPod")], outcome: "unchanged" },
    "is renewed once per pass if the API server rejects the new one": {
      when: [given({ certificate: "rejected" }), ready(), set(), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "is not renewed after the API server has rejected an object": {
      when: [expiring, set(), pod(), given({ rejection: "the reason" })],
      outcome: "misconfigured",
    },
  });
});

describe("without a pod, the certificate", () => {
  const missing = given({ certificate: "missing" });
  checkPlans({
    "is issued before the objects are applied": { when: [missing], steps: ["issueCertificate"], outcome: "unchanged" },
    "is issued if the StatefulSet exists": {
      when: [missing, notReady(), set()],
      steps: ["issueCertificate"],
      outcome: "unchanged",
    },
    "is not issued before the names are checked": {
      when: [missing, without("occupied")],
      steps: ["checkNames"],
      outcome: "unchanged",
    },
    "is neither read nor issued while the template is invalid": {
      when: [input({ pod: { ok: false, problems: ["no"] } }), without("certificate")],
      outcome: "misconfigured",
    },
    "is neither read nor issued while the workspace is idle": {
      when: [...idle, without("certificate")],
      steps: forget,
      outcome: "idle",
    },
  });
});

describe("the names of the objects", () => {
  const unchecked = without("occupied");
  checkPlans({
    "are checked before the objects are applied": {
      when: [notReady(), set({ builtHash: "old" }), pod(), unchecked],
      steps: ["checkNames"],
      outcome: "unchanged",
    },
    "are not checked if the objects are as they should be": {
      when: [ready(), set(), pod(), unchecked],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "are not checked while a former StatefulSet is being deleted": {
      when: [set({ builtHash: "old", isDeleting: true }), unchecked],
      outcome: "waiting",
      contains: "former StatefulSet",
    },
    "are not checked before the status reports that the pod is replaced": {
      when: [ready(), set({ builtHash: "old" }), pod(), update("waiting"), unchecked],
      outcome: "rolling",
      contains: "about to be replaced",
    },
  });
});

test("everything is read and checked before the first object of a new workspace is written", () => {
  const complete = view();
  const learned: Partial<Record<Step["kind"], Partial<WorkspaceView>>> = {
    readInputs: complete.inputs ? { inputs: complete.inputs } : {},
    checkNames: { occupied: [] },
    assessCertificate: { certificate: "missing" },
    issueCertificate: { certificate: "current" },
  };
  const kinds: Step["kind"][] = [];
  const facts: Partial<WorkspaceView>[] = [];
  while (kinds.at(-1) !== "applyObjects" && kinds.length < 10) {
    const [step] = planWorkspace(view(without("inputs", "certificate", "occupied"), ...facts.map(given))).steps;
    if (!step) break;
    kinds.push(step.kind);
    facts.push(learned[step.kind] ?? {});
  }
  expect(kinds).toEqual(["readInputs", "checkNames", "assessCertificate", "issueCertificate", "applyObjects"]);
});
