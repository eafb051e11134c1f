/** Performs the steps of a report: reads what it needs, and calls the forge. */
import type { Update } from "@pko/api";
import { forge, ForgeError, type ForgeHttp } from "@pko/forge";
import { keyOf, stepDone, type Client, type Key, type Performed, type PerformContext } from "@pko/kube";
import { decodeContent, type RecordContent } from "@pko/records";

import { forgeCredentials, secretValues } from "../forge/credentials.ts";
import type { ForgeLimits, ForgeState } from "../forge/forge-limits.ts";
import type { OpenHttp } from "../forge/open-http.ts";
import { versionOf, type PolledObject } from "../inputs/reference-poller.ts";
import { updateRecords } from "../kinds.ts";
import { findSecret } from "../shared/objects/find-secret.ts";
import { readOutputs } from "../shared/outputs/stored-outputs.ts";
import type { GitHubAppTokens } from "../sources/github-app.ts";
import type { Lanes } from "./lanes.ts";
import { forgeLine } from "./observe.ts";
import type { Report, Step } from "./steps.ts";
import type { Access, Answer, Delivered, Details, Output, ReportView, Subject } from "./view.ts";

export interface ReportTools {
  readonly client: Client;
  readonly githubApps: GitHubAppTokens;
  readonly limits: ForgeLimits;
  readonly lanes: Lanes;
  readonly open: OpenHttp;
  /** The monotonic clock. */
  readonly now: () => number;
  /** Until the status shows it, or the Update is deleted. */
  readonly unrecorded: Map<Key, Delivered>;
  /** Retries as soon as the Secret has changed. */
  readonly followSecret: (key: Key, secret: PolledObject, line: string) => void;
  /** For the metric. */
  readonly count: (answer: Answer) => void;
}

type Context = PerformContext<ReportView>;

export async function performReport(tools: ReportTools, step: Step, context: Context): Promise<Performed<ReportView>> {
  const { subject, update, access } = context.view;
  if (!subject) return stepDone;
  switch (step.kind) {
    case "readCredentials":
      return { kind: "replan", facts: { access: await readAccess(tools, subject, context.signal) } };
    case "readDetails":
      return { kind: "replan", facts: { details: await readDetails(tools.client, update, context.signal) } };
    case "send": {
      if (access?.kind !== "found") return stepDone;
      const answer = await deliver(tools, { update, subject, report: step.report, access }, context.signal);
      // Others may have called it since the pass began.
      if (answer === "busy") return { kind: "replan", facts: { subject: { ...subject, forge: busy(subject) } } };
      tools.count(answer);
      if (answer.kind === "delivered") tools.unrecorded.set(keyOf(update), answer);
      // Not only when the failure is recorded: another controller may have written the status at the same time.
      else tools.followSecret(keyOf(update), access.secret, forgeLine(subject.stack, subject.target.url));
      return { kind: "replan", facts: { answer } };
    }
  }
}

async function readAccess(tools: ReportTools, subject: Subject, signal: AbortSignal): Promise<Access> {
  const { namespace = "" } = subject.stack.metadata;
  const { name } = subject.settings.secretRef;
  const found = await findSecret(tools.client, { namespace, name }, signal);
  const version = versionOf(found === "forbidden" ? undefined : found);
  const secret = { kind: "Secret", namespace, name, version } as const;
  if (found === "forbidden") return { kind: "forbidden", secret };
  if (!found) return { kind: "missing", secret };
  const { githubApps } = tools;
  const resolved = await forgeCredentials(name, secretValues(found.data), { ...subject, githubApps, signal });
  return { ...resolved, secret };
}

/** What has been deleted in the meantime is missing in the comment. */
async function readDetails(client: Client, update: Update, signal: AbortSignal): Promise<Details> {
  const record = await readRecord(client, update, signal);
  return { outputs: await readKnownOutputs(client, update, signal), ...(record && { record }) };
}

async function readRecord(
  client: Client,
  { metadata }: Update,
  signal: AbortSignal,
): Promise<RecordContent | undefined> {
  const { namespace = "", name = "", uid } = metadata;
  const found = await client.find(updateRecords, { namespace, name }, { signal });
  const { content, updateUid } = found?.record ?? {};
  return content !== undefined && updateUid === uid ? await decodeContent(content) : undefined;
}

async function readKnownOutputs(client: Client, { metadata, status }: Update, signal: AbortSignal): Promise<Output[]> {
  const { namespace = "" } = metadata;
  if (status?.outputs === undefined) return [];
  const found = await findSecret(client, { namespace, name: status.outputs }, signal);
  if (!found || found === "forbidden") return [];
  return readOutputs(found)
    .map(({ name, secret, json }) => (secret ? { name } : { name, json }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

const busy = ({ forge: state }: Subject): ForgeState => ({ ...state, isBusy: true });

interface Delivery {
  readonly update: Update;
  readonly subject: Subject;
  readonly report: Report;
  readonly access: Extract<Access, { kind: "found" }>;
}

/** Reports about the same commit, or the same pull request, are sent one after the other. */
async function deliver(tools: ReportTools, delivery: Delivery, signal: AbortSignal): Promise<Answer | "busy"> {
  const { update, subject, report, access } = delivery;
  const { stack, target, commit, pullRequest = commit } = subject;
  const http = await tools.open(access.credentials, signal);
  const deliverNow = (): Promise<Answer> => answerOf(async () => await sendReport(delivery, http));
  const lane = `${target.url} ${target.repository} ${pullRequest} ${report.status.context}`;
  const failureIn = (answer: Answer) => (answer.kind === "failed" ? { ...answer, at: tools.now() } : undefined);
  const send = (): Promise<Answer> => tools.lanes.run(lane, deliverNow);
  return await tools.limits.run({ line: forgeLine(stack, target.url), key: keyOf(update), send, failureIn });
}

async function sendReport({ subject, report, access }: Delivery, http: ForgeHttp): Promise<Answer> {
  const client = forge(subject.target, access.credentials, { http });
  await client.setStatus(subject.commit, report.status);
  const { digest } = report;
  if (!report.comment) return { kind: "delivered", digest };
  const { pullRequest, ...comment } = report.comment;
  const known = subject.commentID === undefined ? {} : { known: subject.commentID };
  return { kind: "delivered", digest, commentID: await client.putComment(pullRequest, { ...comment, ...known }) };
}

async function answerOf(send: () => Promise<Answer>): Promise<Answer> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof ForgeError)) throw error;
    const { kind, message, retryAfterMs } = error;
    return { kind: "failed", error: kind, message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }
}
