import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { waitFor } from "@pko/testkit";
import { LogFiles } from "./log-files.ts";

const folder = mkdtempSync(join(tmpdir(), "pko-log-files-"));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function writeLog(pod: string, container: string, lines: string): string {
  const path = join(folder, pod, container, "0.log");
  mkdirSync(join(folder, pod, container), { recursive: true });
  writeFileSync(path, lines);
  return path;
}

const stamp = "2026-11-20T10:00:00.000000000Z";
const isOpen = (path: string): boolean =>
  readdirSync("/proc/self/fd").some((file) => {
    try {
      return readlinkSync(`/proc/self/fd/${file}`) === path;
    } catch {
      return false;
    }
  });

test("reads what containers of the namespace have logged, also after their pods were deleted", async () => {
  using files = new LogFiles([folder], { namespace: "team", container: "pulumi" });
  const path = writeLog("team_web-workspace-0_1", "pulumi", `${stamp} stdout F one\n${stamp} stderr F two\n`);
  writeLog("team_web-workspace-0_1", "bootstrap", `${stamp} stdout F other container\n`);
  writeLog("team-b_web-workspace-0_2", "pulumi", `${stamp} stdout F other namespace\n`);
  await waitFor(() => isOpen(path), { what: "the file to be open" });
  rmSync(folder, { recursive: true });
  for (const time of ["first", "second"]) expect(files.read(), time).toEqual(["one\ntwo\n"]);
});

test("joins a line that the container runtime has divided", () => {
  using files = new LogFiles([folder], { namespace: "team", container: "pulumi" });
  writeLog("team_web-workspace-0_1", "pulumi", `${stamp} stdout P {"level":\n${stamp} stdout F "info"}\n`);
  expect(files.read()).toEqual(['{"level":"info"}\n']);
});

test("there may be no pods", () => {
  using files = new LogFiles([join(folder, "missing")], { namespace: "team", container: "pulumi" });
  expect(files.read()).toEqual([]);
});
