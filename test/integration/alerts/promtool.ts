/** Prometheus evaluates the alerts of the chart for given series, with promtool. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { toolPath } from "@pko/cluster";

import { chart, helm, manifestsIn } from "../../e2e/install/helm.ts";

export const release = "pulumi-kubernetes-operator";

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Rules {
  readonly file: string;
  readonly rules: readonly AlertRule[];
}

/** A series and its values, one for each interval, in promtool's notation. */
export type Series = Readonly<Record<string, string>>;

interface RuleTest {
  readonly name: string;
  readonly series: Series;
  /** When the alerts are evaluated, from the first value on; with several times, the same is expected at each. */
  readonly at: string | readonly string[];
  /** The number of firing alerts by name. Alerts that are not listed are not compared, unless `exactly` is set. */
  readonly firing: Readonly<Record<string, number>>;
  readonly exactly?: boolean;
  /** Only alerts with this label are counted, except with `exactly`. */
  readonly namespace?: string;
  /** The annotations of alerts with the labels that Prometheus adds to them. */
  readonly annotated?: readonly object[];
}

const folder = mkdtempSync(join(tmpdir(), "pko-alerts-"));

/** The rules that the chart renders with these values of `prometheusRule`, for an operator in this namespace. */
export async function renderRules(values: object = {}, namespace: string = release): Promise<Rules> {
  const given = await write("values", { prometheusRule: { enabled: true, ...values } });
  const capabilities = ["--kube-version=1.34.0", "--api-versions=monitoring.coreos.com/v1"];
  const text = await helm("template", release, chart, `--namespace=${namespace}`, ...capabilities, `--values=${given}`);
  const { spec } = manifestsIn(text).find(({ kind }) => kind === "PrometheusRule") ?? {};
  const file = await write("rules", spec ?? {});
  const { groups } = spec as unknown as { groups: readonly { readonly rules: readonly AlertRule[] }[] };
  return { file, rules: groups.flatMap(({ rules }) => rules) };
}

/** Throws with the problems that promtool finds. */
export async function checkRules({ file }: Rules): Promise<string> {
  return await promtool("check", "rules", file);
}

/**
 * Throws with the differences. `interval`: between two values of a series, and between two evaluations. One Prometheus
 * evaluates the rules of all operators.
 */
export async function testRules(
  rules: Rules | readonly Rules[],
  tests: readonly RuleTest[],
  interval = "1m",
): Promise<void> {
  const all = [rules].flat();
  // An evaluation of all rules takes most of the time, and most tests are about one of them.
  const byAlerts = Map.groupBy(tests, ({ firing, exactly, annotated }) =>
    exactly || annotated ? "" : Object.keys(firing).join(),
  );
  const files = Array.from(byAlerts, async ([alerts, selected]) => {
    const ruleFiles = alerts === "" ? all.map(({ file }) => file) : [await writeRules(all, alerts.split(","))];
    const content = { rule_files: ruleFiles, evaluation_interval: interval, tests: testGroups(selected, interval) };
    return await write("test", content);
  });
  await promtool("test", "rules", ...(await Promise.all(files)));
}

/** Only the rules of these alerts. */
async function writeRules(all: readonly Rules[], alerts: readonly string[]): Promise<string> {
  const rules = all.flatMap((each) => each.rules).filter(({ alert }) => alerts.includes(alert));
  return await write("rules", { groups: [{ name: "selected", rules }] });
}

async function write(what: string, content: object): Promise<string> {
  const file = join(folder, `${crypto.randomUUID()}-${what}.yaml`);
  await Bun.write(file, JSON.stringify(content));
  return file;
}

function testGroups(tests: readonly RuleTest[], interval: string): object[] {
  return tests.map(({ name, series, at, firing, exactly = false, namespace, annotated = [] }) => ({
    name,
    interval,
    input_series: Object.entries(series).map(([each, values]) => ({ series: each, values })),
    promql_expr_test: [at]
      .flat()
      .flatMap((time) =>
        exactly
          ? [allFiring(time, firing)]
          : Object.entries(firing).map(([alert, count]) => oneFiring(time, { alert, count, namespace })),
      ),
    alert_rule_test: [at].flat().flatMap((time) => annotated.map((expected) => ({ eval_time: time, ...expected }))),
  }));
}

interface Expected {
  readonly alert: string;
  readonly count: number;
  readonly namespace: string | undefined;
}

function oneFiring(at: string, { alert, count, namespace }: Expected): object {
  const matchers = [`alertname="${alert}"`, 'alertstate="firing"', ...(namespace ? [`namespace="${namespace}"`] : [])];
  return {
    expr: `count(ALERTS{${matchers.join(",")}}) or vector(0)`,
    eval_time: at,
    exp_samples: [{ labels: "{}", value: count }],
  };
}

const allFiring = (at: string, firing: RuleTest["firing"]): object => ({
  expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
  eval_time: at,
  exp_samples: Object.entries(firing).map(([alert, value]) => ({ labels: `{alertname="${alert}"}`, value })),
});

async function promtool(...args: readonly string[]): Promise<string> {
  const child = Bun.spawn([toolPath("promtool"), ...args], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`promtool ${args.slice(0, 2).join(" ")} failed:\n${output}${errors}`);
  return output;
}
