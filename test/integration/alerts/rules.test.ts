/** Every alert of the chart, as shipped: when it fires, and when it does not. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { parse } from "yaml";

import { root } from "../../docs/pages.ts";
import { testTimeoutMs } from "../api/install.ts";
import { checkRules, release, renderRules, testRules, type Rules, type Series } from "./promtool.ts";
import { restarting, restartPhases } from "./restarts.ts";

setDefaultTimeout(testTimeoutMs);

let rules: Rules;
beforeAll(async () => {
  rules = await renderRules();
}, testTimeoutMs);

/** A series of the operator, as Prometheus stores it. */
function own(metric: string, labels: Readonly<Record<string, string>> = {}): string {
  const all = { namespace: release, job: release, pod: "operator-0", ...labels };
  return `${metric}{${Object.entries(all)
    .map(([name, value]) => `${name}="${value}"`)
    .join(",")}}`;
}

const web = { exported_namespace: "team", name: "web" };
const ofWeb = (metric: string, labels: Readonly<Record<string, string>> = {}): string =>
  own(metric, { ...web, ...labels });
/** For as long as any test takes. */
const always = (value: number): string => `${value}+0x1100`;
/** Counters, by their increase each minute. */
const growing = (perMinute: number): string => `0+${perMinute}x240`;
/** Counters of one object that fails again and again, with the longest backoff. */
const retried = Array.from({ length: 240 }, (_, minute) => Math.floor(minute / 5)).join(" ");
const repeated = (values: string, times: number): string => Array.from({ length: times }, () => values).join(" ");
/** Counters that grow only in the sixth minute. The alerts are evaluated shortly before it is forgotten. */
const burst = "0x5 40x240";
const day = 1440;
const week = 7 * day;
/** Evaluated less often, because each evaluation takes as long. */
const longAlerts: ReadonlySet<string> = new Set([
  "PulumiStackAwaitingApproval",
  "PulumiStackSuspended",
  "PulumiOperatorSuspended",
]);

/** About the operator, not about a Stack, a Workspace or the slots of a namespace. */
const operatorAlerts: ReadonlySet<string> = new Set([
  "PulumiApprovalPolicyMissing",
  "PulumiOperatorSuspended",
  "PulumiGitHostFailing",
  "PulumiHistoryTooLarge",
  "PulumiCertificateExpiring",
  "PulumiOperatorRequestsRejected",
  "PulumiOperatorDown",
  "PulumiOperatorNoLeader",
  "PulumiOperatorOutOfStep",
  "PulumiOperatorErrors",
  "PulumiOperatorBehind",
]);

interface Situation {
  readonly series: Series;
  /** Minutes after which the alert is evaluated. */
  readonly after: number;
}

interface Case {
  readonly fires: Situation;
  /** The same if the operator restarts again and again, if it is different then; false if the case has its own test of that. */
  readonly restarted?: Series | false;
  /** Other situations in which it fires. */
  readonly alsoFires?: Readonly<Record<string, Situation>>;
  readonly quiet: Readonly<Record<string, Situation>>;
}

const isRead = (reflector: string, pod = "operator-0"): string => own("reflector_healthy", { reflector, pod });
/** An operator that runs and has read everything. What the series of a case show replaces it. */
const healthy: Series = { [own("up")]: always(1), [isRead("stacks")]: always(1) };

const failing = { [ofWeb("stacks_failing")]: always(1) };
const timingOut = { [ofWeb("stack_consecutive_failures", { class: "timedOut" })]: always(2) };
const stalled = (reason: string): Series => ({ [ofWeb("stacks_stalled", { reason })]: always(1) });
const waiting = (reason: string): Series => ({
  [ofWeb("stack_waiting_since_timestamp_seconds", { reason })]: always(0),
});
const polls = (result: string): string => own("git_polls_total", { host: "git.example.com", result });
const requests = (code: string): string => own("rest_client_requests_total", { code, method: "PATCH" });
const slotWait = own("update_slots_waiting_since_timestamp_seconds", { exported_namespace: "team" });
const certificate = own("certificate_expiry_timestamp_seconds", { certificate: "ca" });
const queueAge = own("workqueue_oldest_age_seconds", { name: "stack-controller" });
const leads = (pod: string): string => own("leader_election_master_status", { pod });
const startedAt = (pod: string): string => own("process_start_time_seconds", { pod });
const leaseHeld = (pod: string): string => own("leader_election_lease_held", { pod });
/** For ten minutes, until its pod is replaced. */
const replaced = (value: number): string => `${value}+0x9 stale`;
const later = (value: number): string => `_x10 ${always(value)}`;

const cases: Readonly<Record<string, Case>> = {
  PulumiStackFailing: {
    fires: { series: failing, after: 16 },
    quiet: {
      "not for long enough": { series: failing, after: 14 },
      "it waits on purpose": { series: { ...failing, [ofWeb("stacks_paused")]: always(1) }, after: 60 },
      "it succeeded": { series: { [ofWeb("stacks_failing")]: "1+0x10 0+0x60" }, after: 20 },
    },
  },
  PulumiStackStalled: {
    fires: { series: stalled("SourceUnavailable"), after: 16 },
    quiet: { "a user rejected the plan": { series: stalled("ApprovalRejected"), after: 60 } },
  },
  PulumiStackRetriesExhausted: {
    fires: { series: stalled("RetriesExhausted"), after: 6 },
    quiet: { "it is stalled otherwise": { series: stalled("SpecInvalid"), after: 60 } },
  },
  PulumiStackStuck: {
    fires: { series: waiting("StackProcessing"), after: 130 },
    quiet: {
      "not for long enough": { series: waiting("StackProcessing"), after: 119 },
      "it waits on purpose, or for another Stack that is itself paused": {
        series: { ...waiting("PrerequisiteNotSatisfied"), [ofWeb("stacks_paused")]: always(1) },
        after: 200,
      },
      "its failure is reported": { series: waiting("RetryingAfterFailure"), after: 200 },
    },
  },
  PulumiStackTimingOut: {
    fires: { series: timingOut, after: 6 },
    quiet: {
      "it waits on purpose": { series: { ...timingOut, [ofWeb("stacks_paused")]: always(1) }, after: 60 },
      once: { series: { [ofWeb("stack_consecutive_failures", { class: "timedOut" })]: always(1) }, after: 60 },
    },
  },
  PulumiUpdateNotStopped: {
    fires: { series: { [ofWeb("workspaces_update_not_stopped")]: always(1) }, after: 2 },
    quiet: { "it was stopped": { series: { [ofWeb("workspaces_update_not_stopped")]: "1 stale" }, after: 5 } },
  },
  PulumiStackAwaitingApproval: {
    fires: { series: { [ofWeb("stacks_awaiting_approval")]: always(1) }, after: day + 5 },
    quiet: { "not for a day": { series: { [ofWeb("stacks_awaiting_approval")]: always(1) }, after: day - 5 } },
  },
  PulumiApprovalPolicyMissing: {
    fires: { series: stalled("ApprovalPolicyMissing"), after: 6 },
    quiet: { "it is stalled otherwise": { series: stalled("SpecInvalid"), after: 60 } },
  },
  PulumiStackDrifted: {
    fires: { series: { [ofWeb("stacks_drifted")]: always(1) }, after: 61 },
    quiet: { "it was corrected": { series: { [ofWeb("stacks_drifted")]: "1+0x50 0+0x60" }, after: 100 } },
  },
  PulumiDriftChecksFailing: {
    fires: { series: { [ofWeb("stack_drift_check_failures")]: always(2) }, after: 16 },
    quiet: {
      once: { series: { [ofWeb("stack_drift_check_failures")]: always(1) }, after: 60 },
      "the next one succeeded": { series: { [ofWeb("stack_drift_check_failures")]: "2+0x10 stale" }, after: 20 },
      "no check runs on purpose": {
        series: { [ofWeb("stack_drift_check_failures")]: always(2), [ofWeb("stacks_paused")]: always(1) },
        after: 60,
      },
    },
  },
  PulumiStackSuspended: {
    fires: { series: { [ofWeb("stacks_suspended")]: always(1) }, after: week + 5 },
    quiet: {
      "the whole operator is suspended": {
        series: {
          [ofWeb("stacks_suspended")]: always(1),
          [own("operator_suspended")]: always(1),
        },
        after: week + 5,
      },
    },
  },
  PulumiOperatorSuspended: {
    fires: { series: { [own("operator_suspended")]: always(1) }, after: day + 5 },
    quiet: { "not for a day": { series: { [own("operator_suspended")]: always(1) }, after: day - 5 } },
  },
  PulumiUpdatesWaiting: {
    fires: { series: { [slotWait]: always(0) }, after: 62 },
    quiet: {
      "not for an hour": { series: { [slotWait]: always(0) }, after: 60 },
      // Always another one: the longest wait never exceeds ten minutes.
      "no update waits for an hour": { series: { [slotWait]: "-600+60x240" }, after: 200 },
      "no update waits any longer": {
        series: { [slotWait]: "0+0x70 stale", [leads("operator-0")]: always(1), [startedAt("operator-0")]: always(0) },
        after: 72,
      },
    },
  },
  PulumiNodeLost: {
    fires: { series: { [ofWeb("workspaces_node_lost")]: always(1) }, after: 2 },
    quiet: { "it was confirmed": { series: { [ofWeb("workspaces_node_lost")]: "1 stale" }, after: 5 } },
  },
  PulumiWorkspacePodPending: {
    fires: { series: { [ofWeb("workspaces_pod_pending")]: always(1) }, after: 16 },
    quiet: { "it started": { series: { [ofWeb("workspaces_pod_pending")]: "1+0x10 stale" }, after: 30 } },
  },
  PulumiGitHostFailing: {
    fires: { series: { [polls("listed")]: always(40), [polls("auth")]: growing(1) }, after: 60 },
    quiet: {
      "one repository of many": { series: { [polls("listed")]: growing(10), [polls("auth")]: growing(1) }, after: 60 },
      "a branch is missing": { series: { [polls("branchMissing")]: growing(1) }, after: 60 },
    },
  },
  PulumiHistoryTooLarge: {
    fires: { series: { [own("update_records_deleted_total")]: growing(1) }, after: 20 },
    alsoFires: {
      "there are many Updates": {
        series: { [own("reflector_objects", { reflector: "updates" })]: always(30_000) },
        after: 20,
      },
    },
    quiet: {
      "a normal number of Updates": {
        series: { [own("reflector_objects", { reflector: "updates" })]: always(900) },
        after: 60,
      },
      "no record was deleted for an hour": { series: { [own("update_records_deleted_total")]: always(50) }, after: 90 },
    },
  },
  PulumiCertificateExpiring: {
    fires: { series: { [certificate]: always(6 * 86_400) }, after: 20 },
    quiet: { "it is valid for weeks": { series: { [certificate]: always(30 * 86_400) }, after: 60 } },
  },
  PulumiOperatorRequestsRejected: {
    fires: { series: { [requests("403")]: retried }, after: 60 },
    restarted: { [requests("403")]: growing(1) },
    quiet: {
      "normal conflicts": { series: { [requests("409")]: growing(60), [requests("200")]: growing(60) }, after: 60 },
      "for a moment": { series: { [requests("403")]: burst, [requests("503")]: burst }, after: 22 },
      "single failures": { series: { [requests("<error>")]: retried }, after: 60 },
    },
  },
  PulumiOperatorDown: {
    fires: { series: { [own("up")]: always(0) }, after: 6 },
    restarted: false,
    alsoFires: {
      "no replica exists": { series: { [own("up")]: "1+0x5 stale" }, after: 12 },
      // As with the longest backoff of a kubelet.
      "it always ends soon after its start": { series: { [own("up")]: repeated("0 0 0 0 1 1", 40) }, after: 60 },
    },
    quiet: {
      "one of two replicas is up": {
        series: { [own("up")]: always(1), [own("up", { pod: "operator-1" })]: always(0) },
        after: 60,
      },
      "it was restarted": { series: { [own("up")]: "1+0x20 0 0 0 1+0x60" }, after: 27 },
    },
  },
  PulumiOperatorNoLeader: {
    fires: { series: { [leads("operator-0")]: always(0), [leaseHeld("operator-0")]: always(0) }, after: 6 },
    alsoFires: {
      // For example a Go operator that was not removed.
      "another operator holds the Lease": {
        series: {
          [own("up", { pod: "operator-1" })]: always(1),
          [leads("operator-0")]: always(0),
          [leads("operator-1")]: always(0),
          [leaseHeld("operator-0")]: always(1),
          [leaseHeld("operator-1")]: always(1),
        },
        after: 6,
      },
      "the pod of the leader was replaced, and the new one does not lead": {
        series: {
          [own("up")]: replaced(1),
          [isRead("stacks")]: replaced(1),
          [leads("operator-0")]: replaced(1),
          [leaseHeld("operator-0")]: replaced(1),
          [own("up", { pod: "operator-1" })]: later(1),
          [leads("operator-1")]: later(0),
          [leaseHeld("operator-1")]: later(0),
        },
        after: 16,
      },
    },
    quiet: {
      "a replica leads": {
        series: {
          [leads("operator-0")]: always(0),
          [leads("operator-1")]: always(1),
          [leaseHeld("operator-0")]: always(0),
          [leaseHeld("operator-1")]: always(1),
        },
        after: 60,
      },
      "Prometheus cannot read the metrics of the leader": {
        series: {
          [own("up", { pod: "operator-1" })]: always(0),
          [leads("operator-0")]: always(0),
          [leaseHeld("operator-0")]: always(1),
        },
        after: 60,
      },
    },
  },
  PulumiOperatorOutOfStep: {
    fires: { series: { [isRead("stacks")]: always(0) }, after: 11 },
    quiet: {
      "for a moment": { series: { [isRead("stacks")]: "0+0x5 1+0x60" }, after: 30 },
      "only a pod that was replaced did not": {
        series: {
          [isRead("stacks")]: replaced(0),
          [isRead("stacks", "operator-1")]: later(1),
          [isRead("updates", "operator-1")]: later(0),
        },
        after: 15,
      },
    },
  },
  PulumiOperatorErrors: {
    fires: {
      series: { [own("controller_runtime_reconcile_errors_total", { controller: "stack-controller" })]: retried },
      after: 60,
    },
    // A new process retries at once.
    restarted: { [own("controller_runtime_reconcile_errors_total", { controller: "stack-controller" })]: growing(1) },
    quiet: {
      "for a moment": {
        series: { [own("controller_runtime_reconcile_errors_total", { controller: "stack-controller" })]: burst },
        after: 22,
      },
    },
  },
  PulumiOperatorBehind: {
    fires: { series: { [queueAge]: always(90) }, after: 16 },
    alsoFires: {
      // It starts with an empty queue.
      "the operator is restarted again and again": { series: { [queueAge]: repeated("10 70 130 190", 60) }, after: 60 },
    },
    quiet: {
      "for seconds": { series: { [queueAge]: always(5) }, after: 60 },
      "for a moment": { series: { [queueAge]: "5x9 90 5x60" }, after: 26 },
    },
  },
};

test("promtool accepts the rules", async () => {
  expect(await checkRules(rules)).toContain(`SUCCESS: ${rules.rules.length} rules found`);
});

test("every alert is tested, and has a runbook", () => {
  const names = rules.rules.map(({ alert }) => alert);
  expect(names.toSorted()).toEqual(Object.keys(cases).toSorted());
  const pageOf = ({ annotations }: Rules["rules"][number]): string =>
    /\/(docs\/runbooks\/\w+\.md)$/.exec(annotations["runbook_url"] ?? "")?.[1] ?? "";
  expect(rules.rules.filter((rule) => pageOf(rule) !== `docs/runbooks/${rule.alert}.md`)).toEqual([]);
  expect(names.filter((name) => !existsSync(join(root, "docs/runbooks", `${name}.md`)))).toEqual([]);
});

test("the documented route of Alertmanager uses labels that every alert has", () => {
  const page = readFileSync(join(root, "docs/notifications.md"), "utf8");
  const [, text = ""] = /^```text\n(route:\n.*?)^```$/ms.exec(page) ?? [];
  const { route } = parse(text) as { readonly route: Route };
  const matchers = (route.routes ?? []).flatMap((each) => each.matchers ?? []);
  const labels = [...(route.group_by ?? []), ...matchers.map((matcher) => /^\w+/.exec(matcher)?.[0] ?? "")];
  expect([...new Set(labels)]).toEqual(["alertname", "namespace"]);
  const added = labels.filter((label) => label !== "alertname");
  expect(rules.rules.filter((rule) => added.some((label) => !rule.labels[label])).map(({ alert }) => alert)).toEqual(
    [],
  );
});

interface Route {
  readonly group_by?: readonly string[];
  readonly matchers?: readonly string[];
  readonly routes?: readonly Route[];
}

describe("two operators that one Prometheus scrapes", () => {
  const another = "pulumi-staging";
  const seriesOf = (alerts: readonly string[]): Series => {
    const all = Object.assign({}, healthy, ...alerts.map((alert) => cases[alert]?.fires.series)) as Series;
    const others = Object.entries(all).map(([name, values]) => [
      name.replace(`{namespace="${release}"`, `{namespace="${another}"`),
      values,
    ]);
    return { ...all, ...(Object.fromEntries(others) as Series) };
  };

  test.each([
    ["1m", 60, [...operatorAlerts].filter((alert) => !longAlerts.has(alert))],
    ["10m", day + 5, [...operatorAlerts].filter((alert) => longAlerts.has(alert))],
  ] as const)("raise one alert each, with values every %s", async (interval, after, alerts) => {
    const firing = Object.fromEntries(alerts.map((alert) => [alert, 2]));
    const both = [rules, await renderRules({}, another)];
    const name = "two operators in trouble";
    await testRules(both, [{ name, series: seriesOf(alerts), at: `${after}m`, firing, exactly: true }], interval);
  });

  test("are named in the summaries", async () => {
    const { rules: theirs } = await renderRules({}, another);
    const unnamed = theirs
      .filter(({ alert }) => operatorAlerts.has(alert))
      .filter(({ annotations }) => !annotations["summary"]?.includes(`operator in namespace ${another}`));
    expect(unnamed.map(({ alert }) => alert)).toEqual([]);
  });
});

const testOf = (name: string, { series, after }: Situation, firing: Readonly<Record<string, number>>) => ({
  name,
  series: { ...healthy, ...series },
  at: `${after}m`,
  firing,
});

/** One process for all, because its start takes longer than most of them. */
describe.each([
  ["1m", Object.keys(cases).filter((alert) => !longAlerts.has(alert))],
  ["10m", [...longAlerts]],
] as const)("with values every %s, each alert", (interval, alerts) => {
  test("fires when it should", async () => {
    const tests = alerts.flatMap((alert) => {
      const { fires, alsoFires = {} } = cases[alert] ?? {};
      const situations = Object.entries({ ...(fires && { usually: fires }), ...alsoFires });
      const namespace = operatorAlerts.has(alert) ? release : web.exported_namespace;
      return situations.map(([why, situation]) =>
        Object.assign(testOf(`${alert}: ${why}`, situation, { [alert]: 1 }), { namespace }),
      );
    });
    await testRules(rules, tests, interval);
  });

  test("does not fire otherwise", async () => {
    const tests = alerts.flatMap((alert) =>
      Object.entries(cases[alert]?.quiet ?? {}).map(([why, situation]) =>
        testOf(`${alert}, but ${why}`, situation, { [alert]: 0 }),
      ),
    );
    await testRules(rules, tests, interval);
  });

  test.each(["container", "pod"] as const)("fires while the %s of the operator restarts all the time", async (what) => {
    const step = Number.parseInt(interval, 10);
    const tests = alerts.flatMap((alert) => {
      const { fires = { series: {}, after: 0 }, restarted = fires.series } = cases[alert] ?? {};
      if (restarted === false) return [];
      const intervals = Math.ceil(fires.after / step) + restartPhases.length;
      const series = restarting({ ...healthy, ...restarted }, what, intervals);
      const at = restartPhases.map((phase) => `${fires.after + phase * step}m`);
      return [{ name: `${alert}, with restarts`, series, at, firing: { [alert]: 1 } }];
    });
    await testRules(rules, tests, interval);
  });
});

/** Which updates wait for a slot is known only to the leader, a moment after it leads. */
describe("while a replica that has read everything does not lead yet, or has only just begun to", () => {
  const another = "operator-1";
  /** The leader ends after 70 minutes, and another replica leads four minutes later. */
  const change: Series = {
    [slotWait]: "0+0x69 stale",
    [leads("operator-0")]: "1+0x69 stale",
    [startedAt("operator-0")]: "0+0x69 stale",
    [isRead("stacks")]: "1+0x69 stale",
  };
  const waitsAgain = { [slotWait.replace("operator-0", another)]: `_x76 ${always(0)}` };
  const replacement: Series = {
    [isRead("stacks", another)]: `_x71 ${always(1)}`,
    [leads(another)]: `_x71 0+0x2 ${always(1)}`,
    [startedAt(another)]: `_x71 ${always(71 * 60)}`,
  };
  const standby: Series = {
    [isRead("stacks", another)]: always(1),
    [leads(another)]: `0+0x73 ${always(1)}`,
    [startedAt(another)]: always(0),
  };
  const restarted: Series = {
    [slotWait]: `0+0x69 stale _x5 ${always(0)}`,
    [leads("operator-0")]: `1+0x69 stale 0+0x2 ${always(1)}`,
    [startedAt("operator-0")]: `0+0x69 stale ${always(71 * 60)}`,
    [isRead("stacks")]: `1+0x69 stale ${always(1)}`,
  };
  const minutes = Array.from({ length: 20 }, (_, index) => 65 + index);

  test.each<[string, Series]>([
    ["a new pod", { ...change, ...replacement, ...waitsAgain }],
    ["a standby", { ...change, ...standby, ...waitsAgain }],
    ["the same pod", restarted],
  ])("an alert about slots continues: %s", async (name, series) => {
    const at = minutes.map((minute) => `${minute}m`);
    await testRules(rules, [{ name, series: { ...healthy, ...series }, at, firing: { PulumiUpdatesWaiting: 1 } }]);
  });

  test.each<[string, Series]>([
    ["a new pod", { ...change, ...replacement }],
    ["a standby", { ...change, ...standby }],
  ])("an alert about slots is resolved if no update waits any longer: %s", async (name, series) => {
    const firing = { PulumiUpdatesWaiting: 0 };
    await testRules(rules, [{ name, series: { ...healthy, ...series }, at: "77m", firing }]);
  });
});

test("an operator that restarts all the time raises no alert about anything else", async () => {
  const series = {
    ...healthy,
    [ofWeb("stacks_failing")]: always(0),
    [ofWeb("stacks_drifted")]: always(0),
    [leads("operator-0")]: always(1),
    [leaseHeld("operator-0")]: always(1),
    [certificate]: always(30 * 86_400),
    [queueAge]: always(5),
    [requests("200")]: growing(60),
    [polls("listed")]: growing(1),
  };
  const tests = (["container", "pod"] as const).map((what) => ({
    name: what,
    series: restarting(series, what, 200),
    at: restartPhases.map((phase) => `${180 + phase}m`),
    firing: {},
    exactly: true,
  }));
  await testRules(rules, tests);
});

test("an alert shows the Stack, the reason and how long it has waited, and links to the runbook", async () => {
  const { series, after } = cases["PulumiStackStuck"]?.fires ?? { series: {}, after: 0 };
  const rule = rules.rules.find(({ alert }) => alert === "PulumiStackStuck");
  const expected = {
    alertname: "PulumiStackStuck",
    exp_alerts: [
      {
        exp_labels: { ...web, namespace: "team", reason: "StackProcessing", severity: "warning" },
        exp_annotations: {
          summary: "Stack web in namespace team has been waiting for 2h 10m 0s: StackProcessing.",
          description: (rule?.annotations["description"] ?? "")
            .replace("{{ $labels.name }}", "web")
            .replace("{{ $labels.exported_namespace }}", "team"),
          runbook_url: rule?.annotations["runbook_url"] ?? "",
        },
      },
    ],
  };
  await testRules(rules, [
    { name: "annotations", series: { ...healthy, ...series }, at: `${after}m`, firing: {}, annotated: [expected] },
  ]);
});
