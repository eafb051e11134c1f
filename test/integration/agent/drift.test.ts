/** A drift check with the real CLI. The outputs of another stack, to which a resource refers, change behind its back. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { program, stash, TestWorkspace } from "./harness.ts";

setDefaultTimeout(300_000);

const check = { kind: "refresh", previewOnly: true } as const;
const base = (value: string) => program({ name: "base", outputs: { value, nested: { list: [1, value] } } });

describe("a drift check", () => {
  const other = new TestWorkspace();
  const web = new TestWorkspace({ env: { PULUMI_BACKEND_URL: `file://${other.backend}` } });
  const deploy = async (run: string, value: string): Promise<void> => {
    await other.prepare(base(value));
    expect(await other.run(run, { kind: "up" })).toMatchObject({ outcome: "succeeded" });
  };
  /** Everything that a run could leave in the backend: state, locks, history, backups. */
  const backendFiles = (): string[] =>
    readdirSync(other.backend, { recursive: true, withFileTypes: true })
      .filter((item) => item.isFile())
      .map(({ parentPath, name }) => join(parentPath, name))
      .map((path) => `${path} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`)
      .toSorted();

  test("finds nothing after an update", async () => {
    await other.start();
    await web.start();
    await deploy("base-1", "one");
    const reference = { type: "pulumi:pulumi:StackReference", properties: { name: "organization/base/dev" } };
    const resources = { ref: reference, a: stash("x") };
    await web.prepare(program({ resources, outputs: { token: { "fn::secret": "canary-output" } } }));
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    const before = backendFiles();
    const result = await web.run("check-1", check);
    expect(result).toMatchObject({ outcome: "succeeded", exitCode: 0, drift: { resources: [], omitted: 0 } });
    expect(result.error).toBeUndefined();
    expect(result.outputs).toBeUndefined();
    expect(backendFiles()).toEqual(before);
  });

  test("finds what has changed, and changes nothing", async () => {
    await deploy("base-2", "two");
    const before = backendFiles();
    const result = await web.run("check-2", check);
    expect(result).toMatchObject({ outcome: "succeeded", operation: "refresh", exitCode: 7 });
    expect(result.error).toBeUndefined();
    expect(result.drift).toEqual({
      resources: [
        {
          urn: "urn:pulumi:dev::demo::pulumi:pulumi:StackReference::ref",
          operation: "update",
          properties: ["outputs.nested.list[1]", "outputs.value"],
        },
      ],
      omitted: 0,
    });
    expect(result.output.tail).toContain("pulumi:pulumi:StackReference ref update");
    expect(result.changes).toMatchObject({ update: 1 });
    expect(backendFiles()).toEqual(before);
  });

  test("does not wait for a lock", async () => {
    const folder = join(other.backend, ".pulumi/locks/organization/demo/dev");
    mkdirSync(folder, { recursive: true });
    const holder = { pid: 7, username: "someone", hostname: "laptop", timestamp: "2020-01-01T00:00:00Z" };
    const lock = join(folder, "00000000-0000-4000-8000-000000000000.json");
    writeFileSync(lock, JSON.stringify(holder));
    expect(await web.run("check-3", check)).toMatchObject({ outcome: "succeeded", drift: { omitted: 0 } });
    expect(existsSync(lock)).toBe(true);
    await Bun.file(lock).delete();
  });

  test("does not report a pending change of the program", async () => {
    await web.run("up-2", { kind: "up", refresh: true });
    await web.prepare(program({ resources: { a: stash("changed") } }));
    expect(await web.run("check-4", check)).toMatchObject({ outcome: "succeeded", drift: { resources: [] } });
  });

  test("fails if the state cannot be read", async () => {
    const file = join(other.backend, ".pulumi/stacks/demo/dev.json");
    const state = readFileSync(file);
    writeFileSync(file, "not a state");
    const result = await web.run("check-5", check);
    expect(result.outcome).toBe("failed");
    expect(result.drift).toBeUndefined();
    writeFileSync(file, state);
  });
});
