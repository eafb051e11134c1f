/** `make demo`, twice: the second run removes the objects of the first. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";

import { attempt, repositoryRoot } from "@pko/cluster";

import { kubectl } from "../harness.ts";

async function demo(example: string): Promise<{ readonly code: number; readonly output: string }> {
  const options = { cwd: repositoryRoot, env: { NO_COLOR: "1" } };
  const { code, stdout, stderr } = await attempt(["make", "demo", `EXAMPLE=${example}`], options);
  return { code, output: stdout + stderr };
}

describe("make demo", () => {
  afterAll(async () => {
    await kubectl(["delete", "stack", "shop", "--namespace=default", "--ignore-not-found", "--timeout=60s"]);
    await kubectl(["delete", "-f", join(repositoryRoot, "examples/program"), "--ignore-not-found"]);
    // This operator serves every namespace, including those of other tests.
    await kubectl(["delete", "deployment", "--all", "--namespace=pulumi-kubernetes-operator", "--timeout=60s"]);
  }, 120_000);

  test("deploys the example, shows its resources and outputs, and rolls a change out in the same workspace", async () => {
    const { code, output } = await demo("program");
    expect(output).toContain("+ settings  pulumi:index:Stash");
    expect(output).toMatch(/shop: ready: up succeeded \(5 created\)/);
    expect(output).toContain("https://shop.example.com");
    expect(output).toContain("~ settings  pulumi:index:Stash");
    expect(output).toContain("https://market.example.com");
    expect(output).toContain("adminPassword  [secret]");
    expect(code).toBe(0);
  }, 300_000);

  test("can be repeated", async () => {
    const { code, output } = await demo("program");
    expect(output).toMatch(/shop: ready: up succeeded \(5 created\)/);
    expect(code).toBe(0);
  }, 300_000);

  test("lists the examples when the requested one does not exist", async () => {
    const { code, output } = await demo("nonsense");
    expect(output).toContain("error: there is no example nonsense: choose from");
    expect(code).not.toBe(0);
  });
});
