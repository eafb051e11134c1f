/** `make test KEEP=1` records its result on the page of supported versions, so that its table shows what was tested. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { cliVersion, kubernetesVersion } from "@pko/cluster";

import { partOf, replacePart } from "./page-part.ts";
import type { Report } from "./report.ts";
import { repositoryRoot } from "./suites.ts";

const page = join(repositoryRoot, "docs/support.md");
const part = "results";
const header = ["Kubernetes", "Pulumi CLI", "machine", "suites", "passed", "failed", "skipped", "on"] as const;
/** A later result of the same versions, machine and suites replaces an earlier one. */
const keyColumns = 4;

type Row = readonly string[];

export function recordResult(suites: readonly string[], report: Report): void {
  const { passed, failed, skipped } = report;
  const versions = [kubernetesVersion(process.env["KUBE"]), cliVersion(process.env["PULUMI"])];
  const row = [...versions, machine(), suites.join(", "), ...[passed, failed, skipped].map(String), today()];
  writeFileSync(page, withRow(readFileSync(page, "utf8"), row));
}

function machine(): string {
  const cgroups = existsSync("/sys/fs/cgroup/cgroup.controllers") ? "v2" : "v1";
  return `${process.arch === "x64" ? "amd64" : process.arch}, cgroups ${cgroups}`;
}

const today = (): string => new Date().toISOString().slice(0, "2026-01-01".length);

export function withRow(text: string, row: Row): string {
  const key = (cells: Row): string => cells.slice(0, keyColumns).join();
  const rows = rowsIn(partOf(text, part).text).filter((other) => key(other) !== key(row));
  const sorted = [...rows, row].toSorted((a, b) => key(b).localeCompare(key(a), "en", { numeric: true }));
  const lines = [header, header.map(() => "---"), ...sorted].map((cells) => `| ${cells.join(" | ")} |`);
  return replacePart(text, part, lines.join("\n"));
}

function rowsIn(table: string): Row[] {
  const rows = table.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}
