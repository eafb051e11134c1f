import { afterEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { imagesFingerprint } from "./images.ts";
import { repositoryRoot } from "./paths.ts";
import { pulumiBuild } from "./pulumi.ts";
import { toolPath } from "./tools.ts";

const folder = join(repositoryRoot, "hack/cluster/go/pulumi");
const versionOf = (build: ReturnType<typeof pulumiBuild>): string =>
  [...new Set(Object.values(build.variables))].join(" ");

test.each([undefined, "", "3.105", "3.259"])("the module file for PULUMI=%s requires its versions", (wanted) => {
  const cli = pulumiBuild("pulumi", wanted);
  const yamlHost = pulumiBuild("pulumi-language-yaml", wanted);
  expect(yamlHost.moduleFile).toBe(cli.moduleFile);
  const text = readFileSync(join(folder, cli.moduleFile), "utf8");
  expect(text).toContain(`github.com/pulumi/pulumi/pkg/v3 ${versionOf(cli)} `);
  expect(text).toContain(`github.com/pulumi/pulumi/sdk/v3 ${versionOf(cli)} `);
  expect(text).toContain(`github.com/pulumi/pulumi-yaml ${versionOf(yamlHost)} `);
});

test("every module file is used by a version", () => {
  const files = readdirSync(folder).filter((name) => /^go-.*\.mod$/.test(name));
  for (const name of files) {
    expect(pulumiBuild("pulumi", name.slice("go-".length, -".mod".length)).moduleFile).toBe(name);
  }
});

test("an unknown version is an error that lists the known ones", () => {
  expect(() => pulumiBuild("pulumi", "3.1")).toThrow("PULUMI is 3.1: set it to one of 3.105, 3.259");
});

describe("another version of the CLI", () => {
  const { PULUMI } = process.env;
  afterEach(() => {
    if (PULUMI === undefined) delete process.env["PULUMI"];
    else process.env["PULUMI"] = PULUMI;
  });
  const withCli = <T>(version: string, read: () => T): T => {
    process.env["PULUMI"] = version;
    return read();
  };

  test.each(["pulumi", "pulumi-language-yaml"] as const)("has its own cached %s", (name) => {
    const path = (): string => toolPath(name);
    expect(withCli("3.105", path)).not.toBe(withCli("", path));
    expect(withCli("3.259", path)).toBe(withCli("", path));
  });

  test("has its own images", () => {
    expect(withCli("3.105", imagesFingerprint)).not.toBe(withCli("", imagesFingerprint));
  });
});
