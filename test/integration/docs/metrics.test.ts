/** The metrics that a real operator exposes, with everything enabled, are those on the pages. */
import { silentLogger } from "@pko/kube";
import { waitFor } from "@pko/testkit";
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { operator } from "../../../packages/operator/src/operator.ts";
import { parseOptions } from "../../../packages/operator/src/options.ts";
import { pages } from "../../docs/pages.ts";
import { listedOn } from "../../docs/tables.ts";
import { traceReceiver } from "../../traces/receiver.ts";
import { StackScene, testTimeoutMs } from "../stack/scene.ts";

setDefaultTimeout(testTimeoutMs);

/** Exposed only once there is something to report. */
const exposedLater: ReadonlySet<string> = new Set(["metrics_series_dropped_total"]);

/** The names of the metrics of a replica that leads, with webhooks and traces. */
async function exposedMetrics(): Promise<Set<string>> {
  await using scene = await StackScene.open("without operator");
  using traces = traceReceiver();
  const { namespace } = scene;
  const flags = ["--leader-elect", `--namespace=${namespace}`, `--watch-namespaces=${namespace}`, "--agent-image=none"];
  const addresses = ["probe", "metrics", "webhook"].map((name) => `--${name}-address=127.0.0.1:0`);
  const manager = await operator({
    options: parseOptions([...flags, ...addresses], {}),
    credentials: scene.rights.credentials,
    log: silentLogger,
    environment: traces.environment,
  });
  const stop = new AbortController();
  const running = manager.run(stop.signal);
  try {
    const metrics = async (): Promise<Set<string>> => {
      const response = await fetch(`http://127.0.0.1:${manager.ports.metrics}/metrics`);
      return new Set(Array.from((await response.text()).matchAll(/^# TYPE (\S+)/gm), ([, name = ""]) => name));
    };
    // The controllers start, and have queues, a moment after the operator leads.
    const haveStarted = async () => (await metrics()).has("workqueue_depth");
    await waitFor(haveStarted, { what: "the controllers to start", timeoutMs: testTimeoutMs / 4 });
    return await metrics();
  } finally {
    stop.abort();
    await running;
  }
}

const withoutLabels = (span: string): string => span.replace(/\{.*\}$/, "");

/** Code spans on any page that look like the name of a metric. */
function mentionedMetrics(): string[] {
  const mentioned = pages.filter(({ path }) => path.startsWith("docs/")).flatMap(({ spans }) => spans);
  return mentioned.map(withoutLabels).filter((name) => /^[a-z]+(_[a-z]+)*_(total|seconds|bytes)$/.test(name));
}

let exposed: ReadonlySet<string>;
beforeAll(async () => {
  exposed = await exposedMetrics();
}, testTimeoutMs);

test("the operations page lists every metric, and no other", () => {
  const known = [...exposed, ...exposedLater];
  expect(listedOn("Metrics").map(withoutLabels).toSorted()).toEqual(known.toSorted());
});

test("every metric that a page mentions exists", () => {
  const known = new Set([...exposed, ...exposedLater]);
  expect(mentionedMetrics().length).toBeGreaterThan(30);
  expect(mentionedMetrics().filter((name) => !known.has(name))).toEqual([]);
});
