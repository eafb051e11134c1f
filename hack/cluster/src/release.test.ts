import { readFileSync } from "node:fs";
import { join } from "node:path";

import { expect, test } from "bun:test";

import { repositoryRoot } from "./paths.ts";
import { billOfMaterials } from "./release.ts";

test("the bill of materials has all compiled packages and the runtime with their versions", async () => {
  const { components } = JSON.parse(await billOfMaterials()) as { components: { name: string; version: string }[] };
  const versions = Object.fromEntries(components.map(({ name, version }) => [name, version]));
  for (const name of ["operator", "agent", "cli", "kube", "git", "api", "rpc"]) {
    const text = readFileSync(join(repositoryRoot, "packages", name, "package.json"), "utf8");
    const { dependencies = {} } = JSON.parse(text) as { dependencies?: Record<string, string> };
    const others = Object.entries(dependencies).filter(([dependency]) => !dependency.startsWith("@pko/"));
    expect(versions).toMatchObject(Object.fromEntries(others));
  }
  expect(versions["bun"]).toBe(Bun.version);
}, 60_000);
