/** `check`: whether the cluster, the operator and the user's permissions are in order. */
import { clusterChecks, specCheck } from "../check/cluster.ts";
import { migrationDifferences } from "../check/migration.ts";
import { flag, type Command, type Report } from "../command.ts";
import type { Context } from "../context.ts";
import { documentOf, severities, type Check, type Severity, type StackDifference } from "../documents.ts";
import { exitCodes, permissionText } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { section, text, toned, type Block, type Tone } from "../output/blocks.ts";
import { look } from "../visibility.ts";

export const check: Command = {
  name: "check",
  summary: "Check the cluster, the operator, the policies and your permissions",
  details:
    "Exits with 1 if a check fails. With --migrate, lists what would behave differently from the Go operator, by Stack: first what blocks the migration, for which it also exits with 1. Use -A for all namespaces.",
  group: "Administer",
  allNamespaces: "alone",
  options: [{ flags: "--migrate", description: "List what differs from the Go operator, by Stack." }],
  async run(context, input) {
    const isMigration = flag(input, "migrate");
    const [checks, found] = await Promise.all([
      clusterChecks(context, { isMigration }),
      look("the Stacks", listStacks(context)),
    ]);
    const items = found.kind === "seen" ? found.value.items : [];
    const all = [
      ...checks,
      found.kind === "hidden" ? hiddenStacks(permissionText(found.hidden.permission)) : specCheck(items),
    ];
    // Without permission to list Stacks, nothing is known about them.
    const isKnown = isMigration && found.kind !== "hidden";
    return checkReport(all, isKnown ? migrationDifferences(items) : undefined);
  },
};

const listStacks = async ({ client, namespace, allNamespaces }: Context) =>
  await client.list(stacks, { ...(!allNamespaces && { namespace }) });

const hiddenStacks = (permission: string): Check => ({
  name: "Stacks",
  result: "unknown",
  message: `cannot see them: you do not have permission to ${permission}`,
});

export function checkReport(checks: Check[], differences?: StackDifference[]): Report {
  const hasFailed =
    checks.some(({ result }) => result === "failed") || differences?.some(({ severity }) => severity === "blocks");
  return {
    document: documentOf("CheckReport", { checks, ...(differences && { differences }) }),
    blocks: [...checkBlocks(checks), ...(differences ? migrationBlocks(differences) : [])],
    exitCode: hasFailed ? exitCodes.failure : exitCodes.success,
  };
}

const tones: Readonly<Record<Check["result"], Tone>> = {
  ok: "good",
  warning: "warning",
  failed: "bad",
  unknown: "muted",
};

function checkBlocks(checks: readonly Check[]): Block[] {
  const columns = [{ title: "RESULT" }, { title: "CHECK" }, { title: "DETAILS", wraps: true }];
  const rows = checks.map(({ name, result, message, fix }) => [
    toned(tones[result], result),
    name,
    [message, fix].filter(Boolean).join(". ").replaceAll("..", "."),
  ]);
  return [{ kind: "table", columns, rows }];
}

/** True for every Stack, so not repeated for each. */
const general = [
  "For every Stack: its pod is deleted while it is idle, unless idleTimeoutSeconds is 0; failed updates are retried with backoff; and removing a reconcile request triggers nothing. See docs/migration.md.",
];

const severityTitles: Readonly<Record<Severity, string>> = {
  blocks: "Blocks the migration: correct this before you switch",
  mayBlock: "May block the migration: check this before you switch",
  differs: "Differs: nothing to do, unless you rely on the old behavior",
};

function migrationBlocks(differences: readonly StackDifference[]): Block[] {
  const groups = severities.flatMap((severity) => {
    const found = differences.filter((difference) => difference.severity === severity);
    return section(`${severityTitles[severity]} (${found.length})`, differenceTable(found));
  });
  const nothing = differences.length > 0 ? [] : [text("No Stack has anything else that differs.")];
  return [...section("Compared with the Go operator", [...general.map(text), ...nothing]), ...groups];
}

function differenceTable(differences: readonly StackDifference[]): Block[] {
  const columns = [{ title: "STACK" }, { title: "FIELD" }, { title: "WHAT DIFFERS AND WHAT TO DO", wraps: true }];
  const rows = differences.map(({ namespace, name, field, message, fix }) => [
    `${namespace}/${name}`,
    field,
    `${message}; ${fix}`,
  ]);
  return rows.length > 0 ? [{ kind: "table", columns, rows }] : [];
}
