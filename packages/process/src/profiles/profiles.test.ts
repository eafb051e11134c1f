import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";

import { runProfile } from "./client.ts";
import { profileSocket, serveProfiles } from "./server.ts";

const server = serveProfiles();
afterAll(() => server.stop());

interface HeapSnapshot {
  readonly snapshot: { readonly meta: { readonly node_fields: readonly string[] } };
  readonly strings: readonly string[];
}

interface CpuProfile {
  readonly nodes: readonly { readonly callFrame: { readonly functionName: string } }[];
}

const own = ["--pid", String(process.pid)];
const json = async (args: readonly string[]): Promise<unknown> =>
  JSON.parse(Buffer.from(await runProfile(args)).toString());

describe("a process serves", () => {
  test("a heap snapshot", async () => {
    const { snapshot, strings } = (await json(["heap", ...own])) as HeapSnapshot;
    expect(snapshot.meta.node_fields).toContain("self_size");
    expect(strings.length).toBeGreaterThan(1000);
  });

  test("one CPU profile at a time", async () => {
    const ends = await Promise.allSettled([1, 2].map(() => json(["cpu", "--seconds=1", ...own])));
    const profiles = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value as CpuProfile] : []));
    const failures = ends.flatMap((end) => (end.status === "rejected" ? [String(end.reason)] : []));
    expect(profiles.map(({ nodes }) => nodes[0]?.callFrame.functionName)).toEqual(["(root)"]);
    expect(failures).toEqual(["Error: another CPU profile is being recorded"]);
  });

  test("them only to its own user", () => {
    expect(statSync(dirname(profileSocket(process.pid))).mode & 0o777).toBe(0o700);
  });

  test("them until it stops", async () => {
    const other = serveProfiles(2 ** 30);
    other.stop();
    expect(existsSync(dirname(profileSocket(2 ** 30)))).toBe(false);
    const [end] = await Promise.allSettled([runProfile(["heap", `--pid=${2 ** 30}`])]);
    expect(String((end as PromiseRejectedResult).reason)).toContain("serves no profiles at");
  });
});

test.each([
  [[], "needs one of heap, cpu"],
  [["disk"], "needs one of heap, cpu"],
  [["heap", "cpu"], "needs one of heap, cpu"],
  [["cpu", "--seconds=0"], "--seconds must be a whole number between 1 and 300"],
  [["cpu", "--seconds=301"], "--seconds must be"],
  [["heap", "--pid=x"], "--pid must be a process ID"],
])("profile %p is rejected", async (args, message) => {
  const [end] = await Promise.allSettled([runProfile(args)]);
  expect(String((end as PromiseRejectedResult).reason)).toContain(message);
});

test("profile --help shows its flags", async () => {
  expect(await runProfile(["--help"])).toContain("--seconds VALUE");
});
