/** `get`: the fleet, or one Stack in detail. */
import { dependenciesOf, type Stack } from "@pko/api";

import { argument, type Command, type Report } from "../command.ts";
import { findNamed, type Context } from "../context.ts";
import { documentOf, type StackDetail, type StackSummary } from "../documents.ts";
import { stacks } from "../kinds.ts";
import { fields, section, text, toned, type Block, type Field, type Text } from "../output/blocks.ts";
import { absolute, relative } from "../output/time.ts";
import { byUrgency, describeSource, stateTones, summarizeStack } from "../stacks/summary.ts";

export const get: Command = {
  name: "get",
  summary: "Show all Stacks, those that fail first, or one Stack in detail",
  group: "See",
  allNamespaces: "alone",
  args: [{ name: "stack", description: "The name of a Stack.", required: false, completion: "stack" }],
  async run(context, input) {
    const name = argument(input);
    return name === ""
      ? await getFleet(context)
      : detailReport(await findNamed(context, stacks, name), context.io.now());
  },
};

/** Only what the table shows is kept of each Stack. */
async function getFleet({ client, namespace, allNamespaces, io }: Context): Promise<Report> {
  const { items } = await client.list(stacks, { ...(!allNamespaces && { namespace }), transform: withoutReports });
  const summaries = items.map(summarizeStack).toSorted(byUrgency);
  const where = allNamespaces ? "the cluster" : `namespace ${namespace}`;
  return {
    document: documentOf("StackList", { items: summaries }),
    blocks: fleetBlocks(summaries, { now: io.now(), allNamespaces, where }),
  };
}

const withoutReports = ({ apiVersion, kind, metadata, spec, status }: Stack): Stack => ({
  apiVersion,
  kind,
  metadata: { ...metadata, managedFields: [] },
  spec,
  ...(status && { status: { ...status, outputs: {} } }),
});

interface FleetOptions {
  readonly now: number;
  readonly allNamespaces: boolean;
  /** For an empty fleet. */
  readonly where: string;
}

export function fleetBlocks(summaries: readonly StackSummary[], options: FleetOptions): Block[] {
  const { now, allNamespaces, where } = options;
  if (summaries.length === 0) return [text(`There are no Stacks in ${where}.`)];
  const columns = [
    ...(allNamespaces ? [{ title: "NAMESPACE" }] : []),
    { title: "NAME" },
    { title: "STATE" },
    { title: "LAST UPDATE" },
    { title: "MESSAGE", wraps: true },
  ];
  const rows = summaries.map((stack) => [
    ...(allNamespaces ? [stack.namespace] : []),
    stack.name,
    stateText(stack),
    lastUpdateText(stack, now),
    stack.message,
  ]);
  return [{ kind: "table", columns, rows }];
}

export const stateText = ({ state, deleting }: Pick<StackSummary, "state" | "deleting">): Text =>
  toned(stateTones[state], deleting ? `${state}, deleting` : state);

function lastUpdateText({ lastUpdate }: StackSummary, now: number): string {
  if (!lastUpdate) return "none";
  return [lastUpdate.type, lastUpdate.state, relative(lastUpdate.time, now)].filter(Boolean).join(" ");
}

export function detailReport(stack: Stack, now: number): Report {
  const detail = describeStack(stack);
  return { document: detail, blocks: detailBlocks(detail, now) };
}

export function describeStack(stack: Stack): StackDetail {
  const { status } = stack;
  const { waiting, currentUpdate, approval, drift } = status ?? {};
  return documentOf("StackDetail", {
    ...summarizeStack(stack),
    source: describeSource(stack.spec),
    ...(waiting && { waiting: { for: waiting.for, since: waiting.since } }),
    ...(currentUpdate?.name !== undefined && { currentUpdate: currentUpdate.name }),
    ...(approval && { approval }),
    ...(drift && { drift }),
    outputs: status?.outputs ?? {},
    conditions: status?.conditions ?? [],
    dependsOn: dependenciesOf(stack),
  });
}

function detailBlocks(detail: StackDetail, now: number): Block[] {
  return [
    fields([
      ["Stack", `${detail.namespace}/${detail.name}`],
      ["Pulumi stack", detail.stack],
      ["Source", detail.source],
      ["State", stateText(detail)],
      ...(detail.reason ? [["Reason", detail.reason] as const] : []),
      ["Message", detail.message],
      ...waitingFields(detail, now),
      ...(detail.dependsOn.length > 0 ? [["Depends on", detail.dependsOn.join(", ")] as const] : []),
    ]),
    ...section("Last update", lastUpdateBlocks(detail, now)),
    ...section("Approval", approvalBlocks(detail, now)),
    ...section("Drift", driftBlocks(detail, now)),
    ...section("Outputs", outputBlocks(detail.outputs)),
    ...section("Conditions", conditionBlocks(detail, now)),
  ];
}

function waitingFields({ waiting, next, currentUpdate }: StackDetail, now: number): Field[] {
  return [
    ...(currentUpdate === undefined ? [] : [["Running", `Update ${currentUpdate}`] as const]),
    ...(waiting ? [["Waiting for", `${waiting.for}, since ${absolute(waiting.since, now)}`] as const] : []),
    ...(next ? [["Next", `${next.what} at ${absolute(next.time, now)}`] as const] : []),
  ];
}

function lastUpdateBlocks({ lastUpdate }: StackDetail, now: number): Block[] {
  if (!lastUpdate) return [];
  const { type, state, name, time, revision, summary, failures, failure, permalink } = lastUpdate;
  const shown: [string, Text | undefined][] = [
    ["Result", toned(state === "succeeded" ? "good" : "bad", `${type} ${state}`)],
    ["Update", name],
    ["Ended", absolute(time, now) || undefined],
    ["Revision", revision],
    ["Changes", summary],
    [
      "Failures",
      failures === undefined ? undefined : `${failures} in a row${failure === undefined ? "" : ` (${failure})`}`,
    ],
    ["Page", permalink],
  ];
  return [fields(shown.flatMap(([label, value]): Field[] => (value === undefined ? [] : [[label, value]])))];
}

type Approval = NonNullable<NonNullable<Stack["status"]>["approval"]>;
type Drift = NonNullable<NonNullable<Stack["status"]>["drift"]>;

function approvalBlocks(detail: StackDetail, now: number): Block[] {
  const approval = detail.approval as Approval | undefined;
  if (!approval) return [];
  const { state, updateName, decidedBy, decidedAt, reason, expiresAt, summary } = approval;
  const decided = decidedBy === undefined ? [] : [`by ${decidedBy}`, relative(decidedAt, now), reason ?? ""];
  return [
    fields([
      ["State", [state, ...decided].filter(Boolean).join(", ")],
      ["Plan", `of Update ${updateName}, can be applied until ${absolute(expiresAt, now)}`],
      ["Changes", summary],
    ]),
  ];
}

export function driftBlocks(detail: StackDetail, now: number): Block[] {
  const drift = detail.drift as Drift | undefined;
  if (!drift) return [];
  const { checkedAt, resources, omitted = 0, summary } = drift;
  const checked: Field = ["Checked", absolute(checkedAt, now)];
  if (resources.length === 0) return [fields([checked, ["Result", summary ?? "no drift"]])];
  const columns = [{ title: "RESOURCE" }, { title: "CHANGE" }, { title: "PROPERTIES", wraps: true }];
  const rows = resources.map(({ urn, operation, properties = [] }) => [urn, operation, properties.join(", ")]);
  return [
    fields([checked, ...(summary === undefined ? [] : [["Result", summary] as const])]),
    { kind: "table", columns, rows },
    ...(omitted > 0 ? [text(`and ${omitted} more resources`)] : []),
  ];
}

export function outputBlocks(outputs: Readonly<Record<string, unknown>>): Block[] {
  const names = Object.keys(outputs).toSorted();
  if (names.length === 0) return [];
  return [fields(names.map((name): Field => [name, valueText(outputs[name])]))];
}

const valueText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value, undefined, typeof value === "object" ? 2 : 0);

function conditionBlocks({ conditions }: StackDetail, now: number): Block[] {
  const list = conditions as NonNullable<NonNullable<Stack["status"]>["conditions"]>;
  if (list.length === 0) return [];
  const columns = [{ title: "TYPE" }, { title: "STATUS" }, { title: "REASON" }, { title: "SINCE" }];
  const rows = list.map(({ type, status, reason, lastTransitionTime }) => [
    type,
    status,
    reason,
    relative(lastTransitionTime, now),
  ]);
  return [{ kind: "table", columns, rows }];
}
