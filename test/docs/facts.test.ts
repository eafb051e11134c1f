/** The reasons, events, messages, flags, alerts and keys of the log on the pages are those of the source code. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import {
  autoEvents,
  stackConditions,
  stackEvents,
  stackNameLabel,
  updateConditions,
  workspaceConditions,
} from "@pko/api";
import { servedRules } from "@pko/install";
import { operatorHelp } from "@pko/operator";
import { ErrorClass } from "@pko/rpc";
import { addAuthority, createAuthorities, rotateAuthorities } from "@pko/rpc/pki";
import { describe, expect, test } from "bun:test";

import {
  stackLogKeys,
  tracedLogKeys,
  updateLogKeys,
  workspaceLogKeys,
} from "../../packages/operator/src/shared/log-keys.ts";
import { files, pages, root } from "./pages.ts";
import { listedOn } from "./tables.ts";

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
    ...read("hack/cluster/src/pulumi.ts").matchAll(/(?:pulumiVersion =|\bpulumi:) "([\d.]+)"/g),
    ...tools.matchAll(/argoCdVersion = "([\d.]+)"/g),
    ...read("hack/cluster/go/source-controller/go.mod").matchAll(/source-controller v([\d.]+)/g),
    ...read("hack/cluster/go/helm/go.mod").matchAll(/helm\/v3 v(\d+\.\d+)/g),
    ...read("packages/agent/src/pulumi/version.ts").matchAll(/minimumVersion = "(\d+\.\d+)/g),
  ].map(([, version = ""]) => version);
  expect(tested.length).toBeGreaterThan(8);
  const page = read("docs/support.md");
  expect(tested.filter((version) => !page.includes(version))).toEqual([]);
});

test("every version of Kubernetes is tested every night", () => {
  const source = readFileSync(join(root, "hack/cluster/src/kubernetes.ts"), "utf8");
  const versions = Array.from(source.matchAll(/"(\d\.\d+)": "[\d.]+"/g), ([, minor = ""]) => minor);
  const nightly = readFileSync(join(root, ".github/workflows/nightly.yaml"), "utf8");
  const [, matrix = ""] = /^ *kube: (\[.*\])$/m.exec(nightly) ?? [];
  expect((JSON.parse(matrix) as string[]).toSorted()).toEqual(versions.toSorted());
});

test("the agent accepts the oldest CLI that is tested every night, and no older one", () => {
  const [, tested] =
    /PULUMI=([\d.]+) make test/.exec(readFileSync(join(root, ".github/workflows/nightly.yaml"), "utf8")) ?? [];
  const source = readFileSync(join(root, "packages/agent/src/pulumi/version.ts"), "utf8");
  expect(/minimumVersion = "(\d+\.\d+)\.0"/.exec(source)?.[1]).toBe(tested ?? "");
});

test("the flags on the operations page exist", () => {
  const flags = codeSpans("docs/operations.md").filter((span) => /^--[a-z-]+$/.test(span));
  expect(flags.length).toBeGreaterThan(4);
  const help = operatorHelp().split(/\s+/);
  expect(flags.filter((flag) => !help.includes(flag))).toEqual([]);
});

describe("the alerts of the chart", () => {
  const rules = readFileSync(join(root, "charts/pulumi-kubernetes-operator/templates/prometheus-rule.yaml"), "utf8");
  const alerts = Array.from(rules.matchAll(/alert: (\w+)/g), ([, name = ""]) => name).toSorted();
  const pageNames = (paths: readonly string[]): string[] =>
    paths.flatMap((path) => /(Pulumi\w+)\.md$/.exec(path)?.[1] ?? []).toSorted();
  const linksOf = (path: string): readonly string[] => pages.find((page) => page.path === path)?.links ?? [];

  test("are those that the operations page describes", () => {
    expect(alerts.length).toBeGreaterThan(2);
    expect(listedOn("Alerts and a dashboard").toSorted()).toEqual(alerts);
  });

  test("are those with a runbook", () => {
    expect(pageNames(files.filter((path) => path.startsWith("docs/runbooks/")))).toEqual(alerts);
  });

  test("are those in the list of runbooks", () => {
    expect(pageNames(linksOf("docs/runbooks/README.md"))).toEqual(alerts);
  });
});

test("the operations page lists the keys of log lines about an object, and lists no key that is not used", () => {
  const listed = listedOn("Logs");
  const object = { metadata: { uid: "u1", labels: { [stackNameLabel]: "web" } } };
  const used = {
    ...stackLogKeys("web"),
    ...workspaceLogKeys("web", object),
    ...updateLogKeys("web-1", object),
    ...tracedLogKeys(undefined, object),
  };
  expect(Object.keys(used).filter((key) => !listed.includes(key))).toEqual([]);
  const isKey = (name: string): boolean => new RegExp(`[\\s{(]${name}(: |, | \\})`).test(sources);
  expect(listed.length).toBeGreaterThan(10);
  expect(listed.filter((key) => !isKey(key))).toEqual([]);
});

test("log lines in the docs start with the keys that the operator and the agent write", () => {
  const lines = pages
    .flatMap(({ path, blocks }) => blocks.flatMap(({ text }) => text.split("\n").map((line) => `${path}: ${line}`)))
    .filter((line) => /: \{"/.test(line) && line.includes('"level":'));
  expect(lines.length).toBeGreaterThan(3);
  expect(lines.filter((line) => !/: \{"level":"\w+","ts":"[^"]+","msg":"/.test(line))).toEqual([]);
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
