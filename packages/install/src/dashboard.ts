/** The Grafana dashboard of the chart: how the stacks are, how long updates take, and how the operator is. */

interface Panel {
  readonly title: string;
  /** Queries, each with its legend. */
  readonly queries: readonly (readonly [expression: string, legend: string])[];
  readonly unit?: "s" | "bytes" | "percentunit" | "short" | "reqps";
  readonly kind?: "stat" | "timeseries";
}

const of = (metric: string, more = ""): string => `${metric}{namespace="$operator"${more}}`;

/** Once, though several operators tell of it. */
const eachStack = (metric: string): string => `max by (exported_namespace, name) (${of(metric)})`;

const slowest = (metric: string, by: string): string =>
  `histogram_quantile(0.95, sum by (le, ${by}) (rate(${of(`${metric}_bucket`)}[$__rate_interval])))`;

const panels: readonly Panel[] = [
  { title: "Stacks", kind: "stat", queries: [[`max(${of("stacks_active")})`, "stacks"]] },
  {
    title: "Stacks that fail",
    kind: "stat",
    queries: [[`sum(${eachStack("stacks_failing")})`, "failing"]],
  },
  {
    title: "Stacks that are worked on",
    kind: "stat",
    queries: [[`sum(${eachStack("stacks_reconciling")})`, "working"]],
  },
  { title: "Operators that lead", kind: "stat", queries: [[`sum(${of("leader_election_master_status")})`, "leading"]] },
  {
    title: "Failing stacks",
    queries: [[`${eachStack("stacks_failing")} > 0`, "{{exported_namespace}}/{{name}}"]],
  },
  {
    title: "Updates that ended, by type and result",
    unit: "reqps",
    queries: [
      [
        `sum by (type, result) (rate(${of("stack_update_duration_seconds_count")}[$__rate_interval]))`,
        "{{type}} {{result}}",
      ],
    ],
  },
  {
    title: "How long updates run (95 %)",
    unit: "s",
    queries: [[slowest("stack_update_duration_seconds", "type"), "{{type}}"]],
  },
  {
    title: "How long updates wait (95 %)",
    unit: "s",
    queries: [[slowest("stack_update_queue_seconds", "type"), "{{type}}"]],
  },
  {
    title: "From a Stack's creation to its first update (95 %)",
    unit: "s",
    queries: [[slowest("stack_time_to_first_update_seconds", "result"), "{{result}}"]],
  },
  { title: "Objects that wait", queries: [[`max by (name) (${of("workqueue_depth")})`, "{{name}}"]] },
  {
    title: "Reconciles by result",
    unit: "reqps",
    queries: [
      [
        `sum by (controller, result) (rate(${of("controller_runtime_reconcile_total")}[$__rate_interval]))`,
        "{{controller}} {{result}}",
      ],
    ],
  },
  { title: "Watches in step", queries: [[`min by (reflector) (${of("reflector_healthy")})`, "{{reflector}}"]] },
  { title: "Memory", unit: "bytes", queries: [[of("process_resident_memory_bytes"), "{{pod}}"]] },
  {
    title: "CPU",
    unit: "percentunit",
    queries: [[`rate(${of("process_cpu_seconds_total")}[$__rate_interval])`, "{{pod}}"]],
  },
  { title: "Event loop lag", unit: "s", queries: [[of("event_loop_lag_seconds"), "{{pod}}"]] },
];

const datasource = { type: "prometheus", uid: "$datasource" };

/** Rows of four small panels, then of two wide ones. */
function placed(index: number): object {
  const small = panels.filter(({ kind }) => kind === "stat").length;
  if (index < small) return { x: index * 6, y: 0, w: 6, h: 4 };
  const wide = index - small;
  return { x: (wide % 2) * 12, y: 4 + Math.floor(wide / 2) * 8, w: 12, h: 8 };
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
    gridPos: placed(index),
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(([expr, legendFormat], query) => ({
      refId: String.fromCodePoint(65 + query),
      datasource,
      expr,
      legendFormat,
    })),
  })),
});
