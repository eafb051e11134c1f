/** The lifecycle of a Stack whose destructive changes need an approval: what users decide, and when. */
import { isComplete, type Approval, type ApprovalRequest, type Stack, type StackSpec, type Update } from "@pko/api";
import { timestamp } from "@pko/kube";
import { approvals, stacks, updates } from "@pko/operator";

import type { Approver } from "./approver.ts";
import type { CountingCli } from "./counting-cli.ts";
import type { Shop } from "./shop.ts";

export const decisionPhases = [
  "harmless change",
  "rejection",
  "expiry",
  "withdrawal",
  "resumption",
  "destructive destroy",
] as const;
export type DecisionPhase = (typeof decisionPhases)[number];

export interface DecisionOptions {
  readonly shop: Shop;
  readonly approver: Approver;
  readonly cli: CountingCli;
}

const name = "gate";
/** An Update of a user, which occupies the workspace. */
const blocker = "gate-blocker";

/** Starts a phase and returns the condition for its end. */
export async function startDecision(options: DecisionOptions, phase: DecisionPhase): Promise<() => boolean> {
  const { shop, approver } = options;
  switch (phase) {
    case "harmless change":
      // It would wait forever if it needed an approval.
      approver.answer = "Wait";
      await applyGate(shop, "one");
      return () => isDeployed(shop);
    case "rejection":
      approver.answer = "Reject";
      await applyGate(shop, "two");
      return () => shop.hasReason(name, "ApprovalRejected");
    case "expiry":
      approver.answer = "Wait";
      await applyGate(shop, "three");
      await replaceExpiredPlan(options);
      return () => isDeployed(shop);
    case "withdrawal":
      approver.answer = "Wait";
      await applyGate(shop, "four");
      await withdrawApproved(options);
      return () => shop.hasReason(name, "Suspended") && !shop.update(({ metadata }) => metadata.name === blocker);
    case "resumption":
      approver.answer = "Wait";
      await applyGate(shop, "four", { suspend: false });
      return () => isDeployed(shop);
    case "destructive destroy":
      approver.answer = "Approve";
      await shop.client.delete(stacks, shop.ref(name));
      return () => !shop.hasTraces(name);
  }
}

type Text = "one" | "two" | "three" | "four";

/** Each program has another resource, so a change from one to another deletes one. */
async function applyGate(shop: Shop, text: Text, spec: Partial<StackSpec> = {}): Promise<void> {
  const commit = "suspend" in spec ? shop.lastCommit : shop.commit(text, { resources: [text] });
  const approval = { required: "OnDestructiveChanges" } as const satisfies Stack["spec"]["approval"];
  await shop.apply(name, { ...(commit !== undefined && { commit }), destroyOnFinalize: true, approval, ...spec });
}

const isDeployed = (shop: Shop): boolean =>
  shop.isReady(name, ({ lastSuccessfulCommit }) => lastSuccessfulCommit === shop.lastCommit);

async function nextRequest(shop: Shop, former?: ApprovalRequest): Promise<ApprovalRequest> {
  return await shop.until("a plan to wait for an approval", () => {
    const request = shop.request(name);
    return request?.updateUid === former?.updateUid ? undefined : request;
  });
}

async function replaceExpiredPlan({ shop, approver }: DecisionOptions): Promise<void> {
  const expired = await nextRequest(shop);
  await shop.expire(name);
  await approver.decide(await nextRequest(shop, expired), "Approve");
}

/**
 * The approved plan cannot be applied while another Update runs, and then the Stack is suspended. The Approval was used, as if an
 * operator had been interrupted before it recorded the pod, so it is released.
 */
async function withdrawApproved({ shop, approver, cli }: DecisionOptions): Promise<void> {
  const request = await nextRequest(shop);
  cli.block();
  await createBlocker(shop);
  const isRunning = ({ metadata, status }: Update): boolean =>
    metadata.name === blocker && status?.podUid !== undefined;
  await shop.until("the Update of a user to run", () => shop.update(isRunning));
  const approval = await approver.decide(request, "Approve");
  const applies = ({ spec }: Update): boolean => spec?.applyPlan?.updateUid === request.updateUid;
  const applying = await shop.until("an Update that applies the plan", () => shop.update(applies));
  await use(shop, approval, applying);
  await applyGate(shop, "four", { suspend: true });
  const isApplying = ({ metadata }: Update): boolean => metadata.uid === applying.metadata.uid;
  await shop.until("that Update to be withdrawn", () => shop.update(isApplying) === undefined);
  cli.unblock();
  await shop.until("the Update of the user to end", () =>
    shop.update((update) => update.metadata.name === blocker && isComplete(update)),
  );
  await shop.client.delete(updates, shop.ref(blocker));
}

async function use({ client }: Shop, { metadata }: Approval, { metadata: user }: Update): Promise<void> {
  const { name = "", namespace = "" } = metadata;
  const usedBy = { updateName: user.name ?? "", updateUid: user.uid ?? "", time: timestamp(Date.now()) };
  const patch = { type: "merge", body: { status: { usedBy } } } as const;
  await client.patch(approvals, { namespace, name }, { patch, subresource: "status" });
}

async function createBlocker(shop: Shop): Promise<void> {
  const { apiVersion, kind } = updates;
  const spec = { workspaceName: name, stackName: name, type: "preview" } as const;
  await shop.client.create(updates, { apiVersion, kind, metadata: shop.ref(blocker), spec });
}
