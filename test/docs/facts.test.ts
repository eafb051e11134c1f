/** The reasons, events, messages, metrics and flags on the pages exist in the source code. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { autoEvents, stackConditions, stackEvents, updateConditions, workspaceConditions } from "@pko/api";
import { servedRules } from "@pko/install";
import { operatorHelp } from "@pko/operator";
import { ErrorClass } from "@pko/rpc";
import { addAuthority, createAuthorities, rotateAuthorities } from "@pko/rpc/pki";
import { describe, expect, test } from "bun:test";

import { files, pages, root } from "./pages.ts";

const codeSpans = (path: string): readonly string[] => pages.find((page) => page.path === path)?.spans ?? [];

const isSource = (path: string): boolean => /^packages\/.*\.ts$/.test(path) && !/\.test\.ts$|\/testing\//.test(path);
const sources = files
  .filter(isSource)
  .map((path) => readFileSync(join(root, path), "utf8"))
  .join("\n");

const troubleshooting = codeSpans("docs/troubleshooting.md");

describe("the troubleshooting page describes", () => {
  const reasons = [stackConditions, workspaceConditions, updateConditions]
    .flatMap((table) => Object.values<object>(table))
    .flatMap((table) => Object.keys(table));
  const failures = ErrorClass.anyOf.map(({ const: name }) => name);
  test.each([...new Set([...reasons, ...failures])])("%s", (name) => expect(troubleshooting).toContain(name));
});

/** A function rather than `expect(sources)`, so that a failure does not print all sources. */
const isInSources = (text: string): boolean => sources.includes(text);

test("the troubleshooting page quotes messages as they are in the source code", () => {
  const isCommand = (span: string): boolean => /^(pulumi|kubectl) /.test(span) || /^\w+: \w+$/.test(span);
  const messages = troubleshooting.filter((span) => span.includes(" ") && !isCommand(span));
  expect(messages.length).toBeGreaterThan(15);
  expect(messages.filter((message) => !message.split("…").every((part) => isInSources(part.trim())))).toEqual([]);
});

describe("the status page describes the event", () => {
  const documented = codeSpans("docs/updates-and-status.md");
  test.each(Object.keys({ ...stackEvents, ...autoEvents }))("%s", (event) => expect(documented).toContain(event));
});

test("the security page lists exactly the operator's permissions", () => {
  const page = readFileSync(join(root, "docs/security.md"), "utf8");
  const documented = new Map<string, string>();
  for (const [, resources = "", verbs = ""] of page.matchAll(
    /^\| (`[a-z/]+`(?:, `[a-z/]+`)*) +\| ([a-z, ]*[a-z]) +\|/gm,
  )) {
    for (const resource of resources.replaceAll("`", "").split(", ")) documented.set(resource, verbs);
  }
  const granted = servedRules.flatMap(({ resources, verbs }) =>
    resources.map((resource) => [resource, verbs.join(", ")] as const),
  );
  expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(granted));
});

test("the oldest Kubernetes that the docs, the chart and the CLI accept is the oldest that is tested", () => {
  const minorIn = (path: string, pattern: RegExp): number =>
    Number(pattern.exec(readFileSync(join(root, path), "utf8"))?.[1]);
  const tested = minorIn("hack/cluster/src/kubernetes.ts", /const versions = \{ "1\.(\d+)"/);
  const claimed = [
    minorIn("charts/pulumi-kubernetes-operator/Chart.yaml", /kubeVersion: ">= 1\.(\d+)\.0-0"/),
    minorIn("packages/cli/src/check/cluster.ts", /leastMinor = (\d+)/),
    ...["README.md", "docs/getting-started.md", "docs/migration.md"].map((page) =>
      minorIn(page, /Kubernetes 1\.(\d+) or newer/),
    ),
  ];
  expect(claimed).toEqual(claimed.map(() => tested));
});

test("the support page names the versions that are tested", () => {
  const read = (path: string): string => readFileSync(join(root, path), "utf8");
  const tools = read("hack/cluster/src/tools.ts");
  const tested = [
    ...read("hack/cluster/src/kubernetes.ts").matchAll(/"\d\.\d+": "([\d.]+)"/g),
    ...tools.matchAll(/pulumiVersion = "([\d.]+)"/g),
    ...tools.matchAll(/argoCdVersion = "([\d.]+)"/g),
    ...read("hack/cluster/go/source-controller/go.mod").matchAll(/source-controller v([\d.]+)/g),
    ...read("hack/cluster/go/helm/go.mod").matchAll(/helm\/v3 v(\d+\.\d+)/g),
    ...read("packages/agent/src/pulumi/version.ts").matchAll(/minimumVersion = "(\d+\.\d+)/g),
  ].map(([, version = ""]) => version);
  expect(tested.length).toBeGreaterThan(8);
  const page = read("docs/support.md");
  expect(tested.filter((version) => !page.includes(version))).toEqual([]);
});

test("the flags and metrics on the operations page exist", () => {
  const documented = codeSpans("docs/operations.md");
  const flags = documented.filter((span) => /^--[a-z-]+$/.test(span));
  expect(flags.length).toBeGreaterThan(4);
  const help = operatorHelp().split(/\s+/);
  expect(flags.filter((flag) => !help.includes(flag))).toEqual([]);
  // The source code adds these prefixes to the names of some metrics.
  const unprefixed = (span: string): string =>
    /^(?:(?:controller_runtime|workqueue|reflector)_)?([a-z_]+)/.exec(span)?.[1] ?? "";
  const metrics = documented.filter((span) => /^[a-z]+(_[a-z]+)+(\{.*\})?$/.test(span));
  expect(metrics.length).toBeGreaterThan(10);
  expect(metrics.filter((metric) => !isInSources(`"${unprefixed(metric)}"`))).toEqual([]);
});

test("the operations page describes every alert of the chart", () => {
  const rules = readFileSync(join(root, "charts/pulumi-kubernetes-operator/templates/prometheus-rule.yaml"), "utf8");
  const alerts = [...rules.matchAll(/alert: (\w+)/g)].map(([, name = ""]) => name);
  expect(alerts.length).toBeGreaterThan(2);
  const documented = new Set(codeSpans("docs/operations.md"));
  expect(alerts.filter((alert) => !documented.has(alert))).toEqual([]);
});

test("the operations page gives the time after which a former CA is removed", async () => {
  const page = readFileSync(join(root, "docs/operations.md"), "utf8");
  const [, days, hours] = /removed (\d+) days and (\d+) hours after the new one was added/.exec(page) ?? [];
  const hourMs = 3_600_000;
  const added = Date.UTC(2026, 0, 1);
  const removed = added + (Number(days) * 24 + Number(hours)) * hourMs;
  const former = await createAuthorities(new Date(added - 240 * hourMs));
  const both = await addAuthority(former, new Date(added));
  expect(await rotateAuthorities(both, new Date(removed))).toBe(both);
  expect(await rotateAuthorities(both, new Date(removed + 1000))).toEqual(both.slice(1));
});
