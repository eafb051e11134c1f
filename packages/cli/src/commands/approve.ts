/** `approve` and `reject`: decide about the plan that a Stack waits for, in the user's own name. */
import { approvalKind, type Approval, type ApprovalRequest, type Stack } from "@pko/api";

import { argument, stackArgument, textOption, yesOption, type Command, type Input } from "../command.ts";
import { confirm } from "../confirm.ts";
import { findNamed, type Context } from "../context.ts";
import { CliError } from "../errors.ts";
import { approvals, selfReviews, stacks } from "../kinds.ts";
import { blank, fields, heading, text, toned, type Block } from "../output/blocks.ts";
import { render } from "../output/render.ts";
import { absolute } from "../output/time.ts";
import { actionReport } from "./action.ts";

type Decision = Approval["spec"]["decision"];

const options = [
  { flags: "--reason <text>", description: "The reason for your decision. It is stored in the Approval." },
  yesOption,
];

const details = "Shows the plan that awaits approval, asks for confirmation, and creates an Approval in your name.";

export const approve: Command = {
  name: "approve",
  summary: "Approve the pending plan of a Stack",
  details,
  group: "Control",
  args: [stackArgument],
  options,
  run: async (context, input) => await decide(context, input, "Approve"),
};

export const reject: Command = {
  name: "reject",
  summary: "Reject the pending plan of a Stack",
  details,
  group: "Control",
  args: [stackArgument],
  options,
  run: async (context, input) => await decide(context, input, "Reject"),
};

async function decide(context: Context, input: Input, decision: Decision) {
  const name = argument(input);
  const { io } = context;
  const request = pendingRequest(await findNamed(context, stacks, name), io.now());
  // Also with --yes: the log of a pipeline shows what was approved.
  io.err(render(planBlocks(name, request, io.now()), { width: io.width, color: io.color }));
  await confirm(io, input, decision === "Approve" ? "Apply this plan?" : "Reject this plan?");
  const user = await userName(context);
  const reason = textOption(input, "reason");
  const approval = approvalObject(context.namespace, request, { decision, user, reason });
  const created = await context.client.create(approvals, approval, { fieldValidation: "Strict" });
  const approvalName = created.metadata.name ?? "";
  const done = decision === "Approve" ? "approved" : "rejected";
  return actionReport(context, {
    action: decision === "Approve" ? "approve" : "reject",
    name,
    message: `The plan of Update ${request.updateName} was ${done} by ${user} (Approval ${approvalName}).`,
    details: { approval: approvalName, decidedBy: user, update: request.updateName, digest: request.digest },
  });
}

/** Throws if the Stack is not waiting for an approval. */
export function pendingRequest({ metadata, status }: Pick<Stack, "metadata" | "status">, now: number): ApprovalRequest {
  const { name = "", namespace = "" } = metadata;
  const request = status?.approval;
  const why = { fix: `To see what it waits for: kubectl pulumi why ${name} -n ${namespace}` };
  if (!request || request.state === "NotRequired" || request.state === "Superseded") {
    throw new CliError(`Stack ${name} is not waiting for an approval.`, why);
  }
  if (request.state !== "Pending") {
    const by = request.decidedBy === undefined ? "" : ` by ${request.decidedBy}`;
    throw new CliError(`The plan of Stack ${name} was already ${request.state.toLowerCase()}${by}.`, why);
  }
  if (Date.parse(request.expiresAt) <= now) {
    throw new CliError(`The plan of Stack ${name} expired at ${request.expiresAt}. The operator makes a new one.`, why);
  }
  return request;
}

export function planBlocks(name: string, request: ApprovalRequest, now: number): Block[] {
  const { updateName, digest, expiresAt, summary, unknownInputs = 0 } = request;
  return [
    heading(`Stack ${name} waits for an approval of this plan`),
    fields([
      ["Update", updateName],
      ["Digest", digest],
      ["Expires", absolute(expiresAt, now)],
    ]),
    blank,
    text(summary),
    ...(unknownInputs > 0 ? [text(toned("warning", unknownText(unknownInputs)))] : []),
    blank,
  ];
}

const unknownText = (count: number): string =>
  `${count === 1 ? "1 input value" : `${count} input values`} will be known only while the plan is applied.`;

/** As the API server knows the user: the admission policy compares it. */
export async function userName({ client }: Context): Promise<string> {
  const { apiVersion, kind } = selfReviews;
  const { status } = await client.create(selfReviews, { apiVersion, kind, metadata: {} });
  const name = status?.userInfo?.username;
  if (!name) throw new CliError("The API server did not return your user name.");
  return name;
}

interface Decided {
  readonly decision: Decision;
  readonly user: string;
  readonly reason: string | undefined;
}

export function approvalObject(
  namespace: string,
  { updateName, updateUid, digest }: ApprovalRequest,
  { decision, user, reason }: Decided,
): Approval {
  const { apiVersion, kind } = approvalKind;
  return {
    apiVersion,
    kind,
    metadata: { generateName: `${updateName}-`, namespace },
    spec: { updateName, updateUid, digest, decision, decidedBy: user, ...(reason !== undefined && { reason }) },
  };
}
