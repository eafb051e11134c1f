/** A Go program from its source: modules are fetched once, and each run compiles what has changed. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRepository, serveGit } from "@pko/agent/testing";
import { repositoryRoot, toolPath } from "@pko/cluster";
import { TestWorkspace, toolFolders } from "./harness.ts";

// The first time the SDK is compiled.
setDefaultTimeout(600_000);

const example = join(repositoryRoot, "examples/languages/go");

function filesOf(greeting: string): Record<string, string> {
  const texts = readdirSync(example).map((name) => [name, readFileSync(join(example, name), "utf8")] as const);
  return Object.fromEntries(texts.map(([name, text]) => [name, text.replace("Hello", greeting)]));
}

/** The machine's own Go, with the modules and the compiled packages that it keeps. */
async function environment(): Promise<Record<string, string>> {
  const names = ["GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB"];
  const values = (await Bun.$`go env ${names}`.text()).trimEnd().split("\n");
  // Where modules have to be fetched, it is not through the proxy that keeps Pulumi from fetching anything.
  return {
    ...Object.fromEntries(names.map((name, index) => [name, values[index] ?? ""])),
    HTTPS_PROXY: "",
    CGO_ENABLED: "0",
  };
}

test("a Go program is compiled where it runs, and a new commit of the same modules installs nothing", async () => {
  const path = [...toolFolders, dirname(toolPath("pulumi-language-go"))];
  const web = await new TestWorkspace({ path, env: await environment() }).start();
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
    expect((await prepare(repository.commit(filesOf("Hello")))).changed).toMatchObject({ dependencies: true });
    expect((await web.run("up-1", { kind: "up" })).outcome).toBe("succeeded");
    expect(await web.outputs("up-1")).toMatchObject([
      { name: "greeting", value: "Hello, world!" },
      { name: "password", secret: true, value: "canary-go" },
      { name: "times", value: 3 },
    ]);
    expect((await prepare(repository.commit(filesOf("Goodbye")))).changed).toMatchObject({ dependencies: false });
    expect((await web.run("up-2", { kind: "up" })).outcome).toBe("succeeded");
    expect(await web.outputs("up-2")).toMatchObject([{ name: "greeting", value: "Goodbye, world!" }, {}, {}]);
  } finally {
    await git.stop();
  }
});
