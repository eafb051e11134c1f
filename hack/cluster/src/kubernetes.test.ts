import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { kubernetesBuild } from "./kubernetes.ts";
import { repositoryRoot } from "./paths.ts";

const folder = join(repositoryRoot, "hack/cluster/go/kube");
const version = "k8s.io/component-base/version.gitVersion";

test.each([undefined, "", "1.31", "1.33", "1.34", "1.35", "1.37"])(
  "the module file for KUBE=%s requires its version",
  (wanted) => {
    const { moduleFile, variables } = kubernetesBuild(wanted);
    const text = readFileSync(join(folder, moduleFile), "utf8");
    expect(text).toContain(`k8s.io/kubernetes ${variables[version]}\n`);
  },
);

test("every module file is used by a version", () => {
  const files = readdirSync(folder).filter((name) => /^go-.*\.mod$/.test(name));
  for (const name of files) expect(kubernetesBuild(name.slice("go-".length, -".mod".length)).moduleFile).toBe(name);
});

test("an unknown version is an error that lists the known ones", () => {
  expect(() => kubernetesBuild("1.29")).toThrow("KUBE is 1.29: set it to one of 1.31, 1.33, 1.34, 1.35, 1.37");
});
