/** Rules about the operator, the namespace and the Stack itself. */
import { isOperatorSuspended, type Stack } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { Lease } from "kubernetes-types/coordination/v1";

import { conditionOf } from "../../stacks/summary.ts";
import { next, summaries } from "../messages.ts";
import { conditionWith, decide, isObserved, isReady, messageIn, type Rule } from "./rule.ts";

export const stackMissing: Rule = (facts) =>
  facts.stack
    ? undefined
    : decide("stackMissing", { summary: summaries.stackMissing(facts), next: [next.createStack(facts.name)] });

export const namespaceTerminating: Rule = (facts) =>
  (facts.isNamespaceTerminating && !isReady(facts)) || conditionWith(facts, "NamespaceTerminating")
    ? decide("namespaceTerminating", {
        summary: summaries.namespaceTerminating(facts),
        message: messageIn(facts),
        next: [next.namespace],
      })
    : undefined;

/** An operator without leader election has no Lease, but processes its Stacks. */
export const operatorAbsent: Rule = (facts) =>
  facts.operator.kind === "absent" && !isObserved(facts)
    ? decide("operatorAbsent", { summary: summaries.operatorAbsent, next: [next.install] })
    : undefined;

/** A leader renews its Lease every few seconds. The allowance is for a busy API server. */
const renewalAllowanceMs = 60_000;

export const operatorDown: Rule = ({ operator, now, stack }) => {
  if (operator.kind !== "present") return undefined;
  const { metadata, spec } = operator.lease;
  const { holderIdentity = "" } = spec ?? {};
  const renewed = renewTime(operator.lease);
  const expiresAt = Date.parse(renewed) + (spec?.leaseDurationSeconds ?? 0) * 1000 + renewalAllowanceMs;
  const isAlive = holderIdentity !== "" && expiresAt > now;
  // The Lease may be of another operator: one without leader election has none.
  if (isAlive || lastChange(stack) > expiresAt) return undefined;
  return decide("operatorDown", {
    summary: summaries.operatorDown(holderIdentity, renewed, now),
    next: [next.operatorPods(metadata.namespace ?? "")],
  });
};

/** When an operator last changed the state of the Stack, as far as its status shows. */
function lastChange(stack: Stack | undefined): number {
  const { conditions = [], lastUpdate } = stack?.status ?? {};
  const times = [...conditions.map(({ lastTransitionTime }) => lastTransitionTime), lastUpdate?.lastResyncTime ?? ""];
  return Math.max(...times.map((time) => Date.parse(time) || 0));
}

const renewTime = ({ spec }: ApiObject<Lease>): string => spec?.renewTime ?? "";

export const operatorSuspended: Rule = ({ operator }) => {
  if (operator.kind !== "present") return undefined;
  const { namespace = "", annotations } = operator.lease.metadata;
  return isOperatorSuspended(annotations)
    ? decide("operatorSuspended", {
        summary: summaries.operatorSuspended,
        next: [next.resumeOperator(namespace)],
      })
    : undefined;
};

export const notObserved: Rule = (facts) =>
  isObserved(facts)
    ? undefined
    : decide("notObserved", {
        summary: summaries.notObserved(facts),
        next: ["If this lasts longer than a minute, check that the operator serves this namespace (watchNamespaces)."],
      });

export const upToDate: Rule = (facts) => {
  if (!isReady(facts)) return undefined;
  const drifted = conditionOf(facts.stack, "Drifted");
  if (drifted?.status === "True") {
    return decide("drifted", { summary: summaries.drifted(facts), message: drifted.message, next: [next.drift] });
  }
  return decide("upToDate", { summary: summaries.upToDate(facts), message: messageIn(facts), next: [] });
};
