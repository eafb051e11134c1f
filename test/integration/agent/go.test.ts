/** A Go program from source: modules are fetched once, and each run compiles the changes. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRepository, serveGit } from "@pko/agent/testing";
import { goBuildEnv, repositoryRoot, toolPath } from "@pko/cluster";
import { TestWorkspace, toolFolders } from "./harness.ts";

// The first run compiles the SDK.
setDefaultTimeout(600_000);

const example = join(repositoryRoot, "examples/languages/go");

function exampleFiles(greeting: string): Record<string, string> {
  const texts = readdirSync(example).map((name) => [name, readFileSync(join(example, name), "utf8")] as const);
  return Object.fromEntries(texts.map(([name, text]) => [name, text.replace("Hello", greeting)]));
}

/** Uses this machine's Go with its caches. */
async function environment(): Promise<Record<string, string>> {
  const names = ["GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB"];
  const values = (await Bun.$`go env ${names}`.text()).trimEnd().split("\n");
  // Fetch missing modules directly, not through the proxy that blocks Pulumi's downloads.
  return {
    ...Object.fromEntries(names.map((name, index) => [name, values[index] ?? ""])),
    HTTPS_PROXY: "",
    ...goBuildEnv,
  };
}

/** Creates a resource inside apply of a value that a preview does not know. */
const applying = `package main

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		first, err := pulumi.NewStash(ctx, "first", &pulumi.StashArgs{Input: pulumi.String("one")})
		if err != nil {
			return err
		}
		first.ID().ApplyT(func(id pulumi.ID) (string, error) {
			_, err := pulumi.NewStash(ctx, "second", &pulumi.StashArgs{Input: pulumi.String("two")})
			return string(id), err
		})
		return nil
	})
}
`;

async function startWorkspace(): Promise<TestWorkspace> {
  const path = [...toolFolders, dirname(toolPath("pulumi-language-go"))];
  return await new TestWorkspace({ path, env: await environment() }).start();
}

test("a resource inside apply of an unknown value stops the plan, with an explanation", async () => {
  const web = await startWorkspace();
  await web.prepare({ kind: "files", files: { ...exampleFiles("Hello"), "main.go": applying } });
  expect(await web.run("preview", { kind: "preview", savePlan: true })).toMatchObject({ outcome: "succeeded" });
  const result = await web.run("up", { kind: "up", applyPlan: await web.plan("preview") });
  expect(result).toMatchObject({ outcome: "failed", error: { class: "planStopped" } });
  expect(result.error?.message).toContain("::second after ");
  expect(result.error?.message).toContain("inside apply of a value that is unknown during the preview");
  // Without a plan, the same program succeeds.
  expect(await web.run("again", { kind: "up" })).toMatchObject({ outcome: "succeeded", changes: { create: 1 } });
});

test("a Go program is compiled in the workspace, and a new commit with the same modules installs nothing", async () => {
  const web = await startWorkspace();
  const repository = createRepository(join(web.root, "git"), "greeting");
  const git = serveGit(join(web.root, "git"));
  const config = [
    { key: "who", value: { from: "value" as const, value: "world" } },
    { key: "times", value: { from: "value" as const, value: 3 } },
    { key: "password", secret: true, value: { from: "value" as const, value: "canary-go" } },
  ];
  const prepare = (commit: string) =>
    web.prepare({ kind: "git", url: `http://127.0.0.1:${git.port}/greeting.git`, commit, shallow: false }, { config });
  try {
    expect((await prepare(repository.commit(exampleFiles("Hello")))).changed).toMatchObject({ dependencies: true });
    expect((await web.run("up-1", { kind: "up" })).outcome).toBe("succeeded");
    expect(await web.outputs("up-1")).toMatchObject([
      { name: "greeting", value: "Hello, world!" },
      { name: "password", secret: true, value: "canary-go" },
      { name: "times", value: 3 },
    ]);
    expect((await prepare(repository.commit(exampleFiles("Goodbye")))).changed).toMatchObject({ dependencies: false });
    expect((await web.run("up-2", { kind: "up" })).outcome).toBe("succeeded");
    expect(await web.outputs("up-2")).toMatchObject([{ name: "greeting", value: "Goodbye, world!" }, {}, {}]);
  } finally {
    await git.stop();
  }
});
