/** The chart's Grafana dashboard: state of stacks, duration of updates, and health of the operator. */

interface Panel {
  readonly title: string;
  /** Queries with their legends. */
  readonly queries: readonly (readonly [expression: string, legend: string])[];
  readonly unit?: "s" | "bytes" | "percentunit" | "short" | "reqps";
  readonly kind?: "stat" | "timeseries";
}

const metricSelector = (metric: string, more = ""): string => `${metric}{namespace="$operator"${more}}`;

/** One series for each stack, even if several replicas report it. */
const eachStack = (metric: string): string => `max by (exported_namespace, name) (${metricSelector(metric)})`;

/** The sum over all namespaces. A standby reports some of the same. */
const inAllNamespaces = (metric: string): string =>
  `sum(max by (exported_namespace) (${metricSelector(metric)})) or vector(0)`;

const percentile95 = (metric: string, by: string): string =>
  `histogram_quantile(0.95, sum by (le, ${by}) (rate(${metricSelector(`${metric}_bucket`)}[$__rate_interval])))`;

const panels: readonly Panel[] = [
  { title: "Stacks", kind: "stat", queries: [[`max(${metricSelector("stacks_active")})`, "stacks"]] },
  {
    title: "Failing stacks",
    kind: "stat",
    queries: [[`sum(${eachStack("stacks_failing")})`, "failing"]],
  },
  {
    title: "Reconciling stacks",
    kind: "stat",
    queries: [[`sum(${eachStack("stacks_reconciling")})`, "reconciling"]],
  },
  {
    title: "Stalled stacks",
    kind: "stat",
    queries: [[`count(${eachStack("stacks_stalled")}) or vector(0)`, "stalled"]],
  },
  {
    title: "Stacks awaiting approval",
    kind: "stat",
    queries: [[`sum(${eachStack("stacks_awaiting_approval")}) or vector(0)`, "awaiting approval"]],
  },
  {
    title: "Drifted stacks",
    kind: "stat",
    queries: [[`sum(${eachStack("stacks_drifted")}) or vector(0)`, "drifted"]],
  },
  {
    title: "Suspended stacks",
    kind: "stat",
    queries: [[`sum(${eachStack("stacks_suspended")})`, "suspended"]],
  },
  { title: "Leaders", kind: "stat", queries: [[`sum(${metricSelector("leader_election_master_status")})`, "leaders"]] },
  {
    title: "Operator",
    kind: "stat",
    queries: [[metricSelector("operator_build_info"), "{{version}}"]],
  },
  {
    title: "Days until a certificate expires",
    kind: "stat",
    queries: [
      [
        `(min by (certificate) (${metricSelector("certificate_expiry_timestamp_seconds")}) - time()) / 86400`,
        "{{certificate}}",
      ],
    ],
  },
  {
    title: "Pending workspace pods",
    kind: "stat",
    queries: [[`sum(${eachStack("workspaces_pod_pending")}) or vector(0)`, "pending"]],
  },
  {
    title: "Updates waiting for a slot",
    kind: "stat",
    queries: [[inAllNamespaces("update_slots_waiting"), "waiting"]],
  },
  {
    title: "Failing stacks by name",
    queries: [[`${eachStack("stacks_failing")} > 0`, "{{exported_namespace}}/{{name}}"]],
  },
  {
    title: "Stalled stacks by name and reason",
    queries: [
      [
        `max by (exported_namespace, name, reason) (${metricSelector("stacks_stalled")})`,
        "{{exported_namespace}}/{{name}}: {{reason}}",
      ],
    ],
  },
  {
    title: "Waiting stacks by name",
    queries: [
      [`${eachStack("stacks_awaiting_approval")} > 0`, "{{exported_namespace}}/{{name}}: approval"],
      [`${eachStack("stacks_outside_update_window")} > 0`, "{{exported_namespace}}/{{name}}: update window"],
      [`${eachStack("stacks_suspended")} > 0`, "{{exported_namespace}}/{{name}}: suspended"],
    ],
  },
  {
    title: "Longest waits by stack and reason",
    unit: "s",
    queries: [
      [
        `topk(20, time() - max by (exported_namespace, name, reason) (${metricSelector("stack_waiting_since_timestamp_seconds")}))`,
        "{{exported_namespace}}/{{name}}: {{reason}}",
      ],
    ],
  },
  {
    title: "Workspaces by state",
    queries: [[`max by (state) (${metricSelector("workspaces")})`, "{{state}}"]],
  },
  {
    title: "Slots",
    queries: [
      [inAllNamespaces("update_slots_in_use"), "in use"],
      [inAllNamespaces("update_slots_waiting"), "waiting"],
      [`max(${metricSelector("update_slots_limit")})`, "limit"],
    ],
  },
  {
    title: "Longest wait for a slot by namespace",
    unit: "s",
    queries: [
      [
        `time() - min by (exported_namespace) (${metricSelector("update_slots_waiting_since_timestamp_seconds")})`,
        "{{exported_namespace}}",
      ],
    ],
  },
  {
    title: "Drifted stacks by name",
    queries: [[`${eachStack("stacks_drifted")} > 0`, "{{exported_namespace}}/{{name}}"]],
  },
  {
    title: "Consecutive failed drift checks by stack",
    queries: [[eachStack("stack_drift_check_failures"), "{{exported_namespace}}/{{name}}"]],
  },
  {
    title: "Failed updates by class",
    unit: "reqps",
    queries: [
      [`sum by (class) (rate(${metricSelector("stack_update_failures_total")}[$__rate_interval]))`, "{{class}}"],
    ],
  },
  {
    title: "Finished updates by type and result",
    unit: "reqps",
    queries: [
      [
        `sum by (type, result) (rate(${metricSelector("stack_update_duration_seconds_count")}[$__rate_interval]))`,
        "{{type}} {{result}}",
      ],
    ],
  },
  {
    title: "Update duration (95th percentile)",
    unit: "s",
    queries: [[percentile95("stack_update_duration_seconds", "type"), "{{type}}"]],
  },
  {
    title: "Update queue time (95th percentile)",
    unit: "s",
    queries: [[percentile95("stack_update_queue_seconds", "type"), "{{type}}"]],
  },
  {
    title: "Time from creation to first update (95th percentile)",
    unit: "s",
    queries: [[percentile95("stack_time_to_first_update_seconds", "result"), "{{result}}"]],
  },
  { title: "Work queue depth", queries: [[`max by (name) (${metricSelector("workqueue_depth")})`, "{{name}}"]] },
  {
    title: "Oldest object in the work queue",
    unit: "s",
    queries: [[`max by (name) (${metricSelector("workqueue_oldest_age_seconds")})`, "{{name}}"]],
  },
  {
    title: "Requests to the API server by code",
    unit: "reqps",
    queries: [[`sum by (code) (rate(${metricSelector("rest_client_requests_total")}[$__rate_interval]))`, "{{code}}"]],
  },
  {
    title: "Records of runs",
    unit: "bytes",
    queries: [
      [`max(${metricSelector("update_records_bytes")})`, "size"],
      [`max(${metricSelector("update_records_limit_bytes")})`, "limit"],
    ],
  },
  {
    title: "Reconciles by result",
    unit: "reqps",
    queries: [
      [
        `sum by (controller, result) (rate(${metricSelector("controller_runtime_reconcile_total")}[$__rate_interval]))`,
        "{{controller}} {{result}}",
      ],
    ],
  },
  {
    title: "Git polls by host and result",
    unit: "reqps",
    queries: [
      [`sum by (host, result) (rate(${metricSelector("git_polls_total")}[$__rate_interval]))`, "{{host}} {{result}}"],
    ],
  },
  {
    title: "Oldest waiting Git poll",
    unit: "s",
    queries: [[`max(${metricSelector("git_poll_queue_age_seconds")})`, "age"]],
  },
  {
    title: "Healthy watches",
    queries: [[`min by (reflector) (${metricSelector("reflector_healthy")})`, "{{reflector}}"]],
  },
  { title: "Memory", unit: "bytes", queries: [[metricSelector("process_resident_memory_bytes"), "{{pod}}"]] },
  {
    title: "CPU",
    unit: "percentunit",
    queries: [[`rate(${metricSelector("process_cpu_seconds_total")}[$__rate_interval])`, "{{pod}}"]],
  },
  { title: "Event loop lag", unit: "s", queries: [[metricSelector("event_loop_lag_seconds"), "{{pod}}"]] },
];

const datasource = { type: "prometheus", uid: "$datasource" };

/** Rows of four small panels, then rows of two wide panels. */
function gridPosition(index: number): object {
  const small = panels.filter(({ kind }) => kind === "stat").length;
  if (index < small) return { x: (index % 4) * 6, y: Math.floor(index / 4) * 4, w: 6, h: 4 };
  const wide = index - small;
  return { x: (wide % 2) * 12, y: Math.ceil(small / 4) * 4 + Math.floor(wide / 2) * 8, w: 12, h: 8 };
}

export const dashboard = (): object => ({
  title: "Pulumi Kubernetes operator",
  uid: "pulumi-kubernetes-operator",
  tags: ["pulumi", "kubernetes"],
  schemaVersion: 39,
  version: 1,
  editable: true,
  refresh: "30s",
  time: { from: "now-6h", to: "now" },
  templating: {
    list: [
      { name: "datasource", type: "datasource", query: "prometheus", label: "Data source" },
      {
        name: "operator",
        type: "query",
        label: "Operator's namespace",
        datasource,
        query: "label_values(leader_election_master_status, namespace)",
        refresh: 2,
      },
    ],
  },
  panels: panels.map(({ title, queries, unit = "short", kind = "timeseries" }, index) => ({
    id: index + 1,
    type: kind,
    title,
    datasource,
    gridPos: gridPosition(index),
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(([expr, legendFormat], query) => ({
      refId: String.fromCodePoint(65 + query),
      datasource,
      expr,
      legendFormat,
    })),
  })),
});
