/** Every alert of the chart, as shipped: when it fires, and when it does not. */
import { existsSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { root } from "../../docs/pages.ts";
import { testTimeoutMs } from "../api/install.ts";
import { checkRules, release, renderRules, testRules, type Rules, type Series } from "./promtool.ts";

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
const day = 1440;
const week = 7 * day;
/** Evaluated less often, because each evaluation takes as long. */
const longAlerts: ReadonlySet<string> = new Set([
  "PulumiStackAwaitingApproval",
  "PulumiStackSuspended",
  "PulumiOperatorSuspended",
]);

interface Situation {
  readonly series: Series;
  /** Minutes after which the alert is evaluated. */
  readonly after: number;
}

interface Case {
  readonly fires: Situation;
  readonly quiet: Readonly<Record<string, Situation>>;
}

const failing = { [ofWeb("stacks_failing")]: always(1) };
const timingOut = { [ofWeb("stack_consecutive_failures", { class: "timedOut" })]: always(2) };
const stalled = (reason: string): Series => ({ [ofWeb("stacks_stalled", { reason })]: always(1) });
const waiting = (reason: string): Series => ({
  [ofWeb("stack_waiting_since_timestamp_seconds", { reason })]: always(0),
});
const polls = (result: string): string => own("git_polls_total", { host: "git.example.com", result });
const requests = (code: string): string => own("rest_client_requests_total", { code, method: "PATCH" });
const isUp = { [own("up")]: always(1) };

const cases: Readonly<Record<string, Case>> = {
  PulumiStackFailing: {
    fires: { series: failing, after: 16 },
    quiet: {
      "not for long enough": { series: failing, after: 14 },
      "it is suspended": { series: { ...failing, [ofWeb("stacks_suspended")]: always(1) }, after: 60 },
      "it awaits an approval": { series: { ...failing, [ofWeb("stacks_awaiting_approval")]: always(1) }, after: 60 },
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
      "it waits on purpose": { series: waiting("OutsideUpdateWindow"), after: 200 },
    },
  },
  PulumiStackTimingOut: {
    fires: { series: timingOut, after: 6 },
    quiet: {
      "it is suspended": { series: { ...timingOut, [ofWeb("stacks_suspended")]: always(1) }, after: 60 },
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
    fires: { series: { [own("update_slots_waiting", { exported_namespace: "team" })]: always(3) }, after: 61 },
    quiet: {
      "not for an hour": {
        series: { [own("update_slots_waiting", { exported_namespace: "team" })]: always(3) },
        after: 50,
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
    quiet: {
      "a normal number of Updates": {
        series: { [own("reflector_objects", { reflector: "updates" })]: always(900) },
        after: 60,
      },
      "no record was deleted for an hour": { series: { [own("update_records_deleted_total")]: always(50) }, after: 90 },
    },
  },
  PulumiCertificateExpiring: {
    fires: {
      series: { [own("certificate_expiry_timestamp_seconds", { certificate: "ca" })]: always(6 * 86_400) },
      after: 20,
    },
    quiet: {
      "it is valid for weeks": {
        series: { [own("certificate_expiry_timestamp_seconds", { certificate: "ca" })]: always(30 * 86_400) },
        after: 60,
      },
    },
  },
  PulumiOperatorRequestsRejected: {
    fires: { series: { [requests("403")]: growing(3) }, after: 30 },
    quiet: {
      "normal conflicts": { series: { [requests("409")]: growing(60), [requests("200")]: growing(60) }, after: 60 },
    },
  },
  PulumiOperatorDown: {
    fires: { series: { [own("up")]: always(0) }, after: 6 },
    quiet: {
      "one of two replicas is up": { series: { ...isUp, [own("up", { pod: "operator-1" })]: always(0) }, after: 60 },
    },
  },
  PulumiOperatorNoLeader: {
    fires: { series: { [own("leader_election_master_status")]: always(0) }, after: 6 },
    quiet: {
      "one of two replicas leads": {
        series: {
          [own("leader_election_master_status")]: always(0),
          [own("leader_election_master_status", { pod: "operator-1" })]: always(1),
        },
        after: 60,
      },
    },
  },
  PulumiOperatorOutOfStep: {
    fires: { series: { [own("reflector_healthy", { reflector: "stacks" })]: always(0) }, after: 11 },
    quiet: {
      "for a moment": { series: { [own("reflector_healthy", { reflector: "stacks" })]: "0+0x5 1+0x60" }, after: 30 },
    },
  },
  PulumiOperatorErrors: {
    fires: {
      series: { [own("controller_runtime_reconcile_errors_total", { controller: "stack-controller" })]: growing(12) },
      after: 30,
    },
    quiet: {
      "a few": {
        series: { [own("controller_runtime_reconcile_errors_total", { controller: "stack-controller" })]: growing(1) },
        after: 60,
      },
    },
  },
  PulumiOperatorBehind: {
    fires: { series: { [own("workqueue_oldest_age_seconds", { name: "stack-controller" })]: always(90) }, after: 16 },
    quiet: {
      "for seconds": {
        series: { [own("workqueue_oldest_age_seconds", { name: "stack-controller" })]: always(5) },
        after: 60,
      },
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

/** One process for all, because its start takes longer than most of them. */
describe.each([
  ["1m", Object.keys(cases).filter((alert) => !longAlerts.has(alert))],
  ["10m", [...longAlerts]],
] as const)("with values every %s, each alert", (interval, alerts) => {
  test("fires when it should", async () => {
    const tests = alerts.flatMap((alert) => {
      const { fires } = cases[alert] ?? {};
      return fires ? [{ name: alert, series: fires.series, at: `${fires.after}m`, firing: { [alert]: 1 } }] : [];
    });
    await testRules(rules, tests, interval);
  });

  test("does not fire otherwise", async () => {
    const tests = alerts.flatMap((alert) =>
      Object.entries(cases[alert]?.quiet ?? {}).map(([why, { series, after }]) => ({
        name: `${alert}, but ${why}`,
        series,
        at: `${after}m`,
        firing: { [alert]: 0 },
      })),
    );
    await testRules(rules, tests, interval);
  });
});

test("an alert shows the Stack, the reason and how long it has waited, and links to the runbook", async () => {
  const { series, after } = cases["PulumiStackStuck"]?.fires ?? { series: {}, after: 0 };
  const rule = rules.rules.find(({ alert }) => alert === "PulumiStackStuck");
  const expected = {
    alertname: "PulumiStackStuck",
    exp_alerts: [
      {
        exp_labels: { ...web, reason: "StackProcessing", severity: "warning" },
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
  await testRules(rules, [{ name: "annotations", series, at: `${after}m`, firing: {}, annotated: [expected] }]);
});
