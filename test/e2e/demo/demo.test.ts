/** `make demo` as a newcomer runs it, twice: the second time it clears away the first. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";

import { kubectl } from "../harness.ts";

const root = join(import.meta.dir, "../../..");

async function demo(example: string): Promise<{ readonly code: number; readonly said: string }> {
  const child = Bun.spawn(["make", "demo", `EXAMPLE=${example}`], {
    cwd: root,
    env: { ...process.env, NO_COLOR: "1" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [said, complaint, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, said: said + complaint };
}

describe("make demo", () => {
  afterAll(async () => {
    await kubectl(["delete", "stack", "shop", "--namespace=default", "--ignore-not-found", "--timeout=60s"]);
    await kubectl(["delete", "-f", join(root, "examples/program"), "--ignore-not-found"]);
    // Its operator serves every namespace; those of other tests have operators of their own.
    await kubectl(["delete", "deployment", "--all", "--namespace=pulumi-kubernetes-operator", "--timeout=60s"]);
  }, 120_000);

  test("deploys the example, shows its resources and outputs, and rolls a change out in the same workspace", async () => {
    const { code, said } = await demo("program");
    expect(said).toContain("+ settings  pulumi:index:Stash");
    expect(said).toMatch(/shop: ready: up succeeded \(5 created\)/);
    expect(said).toContain("https://shop.example.com");
    expect(said).toContain("~ settings  pulumi:index:Stash");
    expect(said).toContain("https://market.example.com");
    expect(said).toContain("adminPassword  [secret]");
    expect(code).toBe(0);
  }, 300_000);

  test("can be run again", async () => {
    const { code, said } = await demo("program");
    expect(said).toMatch(/shop: ready: up succeeded \(5 created\)/);
    expect(code).toBe(0);
  }, 300_000);

  test("names the examples that there are, when asked for another", async () => {
    const { code, said } = await demo("nonsense");
    expect(said).toContain("error: there is no example nonsense: choose from");
    expect(code).not.toBe(0);
  });
});
