/**
 * The programs of the cluster that are built from Go modules: each is built once and cached with a name that depends on
 * its sources.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";

import { cacheRoot, repositoryRoot } from "./paths.ts";
import { step, type Step } from "./progress.ts";
import { CommandFailed, run } from "./shell.ts";

interface GoTool {
  /** The folder in hack/cluster/go with the go.mod that pins the version. */
  readonly module: string;
  readonly package: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Minutes of a first build on two cores, shown when it starts. */
  readonly minutes: number;
  /** Not needed by the cluster itself. */
  readonly optional?: true;
}

const kubernetesVersion = "v1.34.4";
export const pulumiVersion = "3.259.0";

const tools = {
  kube: {
    module: "kube",
    package: ".",
    variables: {
      "k8s.io/component-base/version.gitVersion": kubernetesVersion,
      "k8s.io/component-base/version.gitMajor": "1",
      "k8s.io/component-base/version.gitMinor": "34",
    },
    minutes: 6,
  },
  pulumi: {
    module: "pulumi",
    package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    variables: { "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": `v${pulumiVersion}` },
    minutes: 4,
  },
  "pulumi-language-yaml": {
    module: "pulumi-language-yaml",
    package: "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml",
    variables: { "github.com/pulumi/pulumi-yaml/pkg/version.Version": "v1.30.1" },
    minutes: 2,
  },
  "pulumi-language-nodejs": {
    module: "pulumi-languages",
    package: "github.com/pulumi/pulumi/sdk/v3/nodejs/cmd/pulumi-language-nodejs",
    minutes: 1,
  },
  "pulumi-language-python": {
    module: "pulumi-languages",
    package: "github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python",
    minutes: 1,
  },
  "pulumi-language-go": {
    module: "pulumi-languages",
    package: "github.com/pulumi/pulumi/sdk/v3/go/pulumi-language-go",
    minutes: 1,
  },
  "language-host": { module: "language-host", package: ".", minutes: 1 },
  coredns: { module: "coredns", package: ".", minutes: 1, optional: true },
  argocd: {
    module: "argocd",
    package: "github.com/argoproj/argo-cd/v3/cmd",
    variables: { "github.com/argoproj/argo-cd/v3/common.version": "3.2.0" },
    minutes: 4,
    optional: true,
  },
  actionlint: {
    module: "actionlint",
    package: "github.com/rhysd/actionlint/cmd/actionlint",
    minutes: 1,
    optional: true,
  },
  helm: { module: "helm", package: "helm.sh/helm/v3/cmd/helm", minutes: 2, optional: true },
  versitygw: {
    module: "versitygw",
    package: "github.com/versity/versitygw/cmd/versitygw",
    minutes: 2,
    optional: true,
  },
  pause: { module: "pause", package: ".", minutes: 1 },
  "source-controller": {
    module: "source-controller",
    package: "github.com/fluxcd/source-controller",
    minutes: 3,
    optional: true,
  },
} satisfies Record<string, GoTool>;

export type ToolName = keyof typeof tools;

export const toolNames = Object.keys(tools) as ToolName[];

/** The tools that the cluster needs. */
export const clusterTools = toolNames.filter((name) => (tools[name] as GoTool).optional === undefined);

/** The source folder of a tool's module, for its other files. */
export async function moduleSources(name: ToolName): Promise<string> {
  const tool: GoTool = tools[name];
  const cwd = moduleFolder(tool);
  return (await run(["go", "list", "-f", "{{.Module.Dir}}", tool.package], { cwd, env: goEnvironment })).trim();
}

/** The path of a tool, which may not be built yet. */
export function toolPath(name: ToolName): string {
  return join(cacheRoot, "tools", `${name}-${fingerprint(tools[name])}`, name);
}

export async function buildTools(names: readonly ToolName[]): Promise<void> {
  for (const name of names) {
    if (!existsSync(toolPath(name))) await build(name);
  }
}

async function build(name: ToolName): Promise<void> {
  const tool: GoTool = tools[name];
  await step(`building ${name} (about ${tool.minutes} min the first time, then cached)`, async (progress) => {
    const target = toolPath(name);
    const folder = join(target, "..");
    const draft = `${folder}.${process.pid}`;
    await mkdir(draft, { recursive: true });
    try {
      await goBuild(tool, join(draft, name), progress);
      await rm(folder, { recursive: true, force: true });
      await rename(draft, folder);
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  });
}

const goEnvironment = { CGO_ENABLED: "0", GOFLAGS: "-mod=readonly -buildvcs=false -trimpath" };

async function goBuild(tool: GoTool, output: string, progress: Step): Promise<void> {
  const cwd = moduleFolder(tool);
  const env = goEnvironment;
  progress.report("downloading modules");
  const total = (await run(["go", "list", "-deps", tool.package], { cwd, env })).trimEnd().split("\n").length;
  // `-v` prints each package as it is compiled: the only progress that the Go tool shows.
  const command = ["go", "build", "-v", "-ldflags", linkerFlags(tool), "-o", output, tool.package];
  const child = Bun.spawn(command, { cwd, env: { ...process.env, ...env }, stdout: "ignore", stderr: "pipe" });
  let lines = "";
  let compiled = 0;
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
    lines = (lines + chunk).slice(-4000);
    compiled += chunk.split("\n").length - 1;
    progress.report(compiled < total ? `${compiled} of ${total} packages` : "linking");
  }
  const code = await child.exited;
  if (code !== 0) throw new CommandFailed(command, { code, stdout: "", stderr: lines });
}

function linkerFlags(tool: GoTool): string {
  const variables = Object.entries(tool.variables ?? {}).map(([name, value]) => `-X ${name}=${value}`);
  return ["-s -w", ...variables].join(" ");
}

function fingerprint(tool: GoTool): string {
  const hash = createHash("sha256").update(JSON.stringify([tool.package, tool.variables, process.arch]));
  const folder = moduleFolder(tool);
  for (const file of readdirSync(folder).toSorted()) hash.update(file).update(readFileSync(join(folder, file)));
  return hash.digest("hex").slice(0, 12);
}

function moduleFolder(tool: GoTool): string {
  return join(repositoryRoot, "hack/cluster/go", tool.module);
}

/** The source folder of a dependency of a tool, for files that are not compiled. */
export async function dependencyFolder(name: ToolName, module: string): Promise<string> {
  const env = { GOFLAGS: "-mod=readonly" };
  return (await run(["go", "list", "-m", "-f", "{{.Dir}}", module], { cwd: moduleFolder(tools[name]), env })).trim();
}
