/**
 * The programs of the cluster that are built from Go modules: each is built once and cached with a name that depends on
 * its sources.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";

import { kubernetesBuild } from "./kubernetes.ts";
import { cacheRoot, repositoryRoot } from "./paths.ts";
import { step, type Step } from "./progress.ts";
import { CommandFailed, run } from "./shell.ts";

interface GoTool {
  /** The folder in hack/cluster/go with the go.mod that pins the version. */
  readonly module: string;
  /** If it is not go.mod. */
  readonly moduleFile?: string;
  readonly package: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Minutes of a first build on two cores, shown when it starts. */
  readonly minutes: number;
  /** Not needed by the cluster itself. */
  readonly optional?: true;
}

export const pulumiVersion = "3.259.0";

const tools = {
  kube: { module: "kube", package: ".", minutes: 6 },
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

/** The variable KUBE selects the version of Kubernetes. */
function definitionOf(name: ToolName): GoTool {
  const tool: GoTool = tools[name];
  return name === "kube" ? { ...tool, ...kubernetesBuild(process.env["KUBE"]) } : tool;
}

/** The source folder of a tool's module, for its other files. */
export async function moduleSources(name: ToolName): Promise<string> {
  const tool = definitionOf(name);
  const cwd = moduleFolder(tool);
  return (await run(["go", "list", "-f", "{{.Module.Dir}}", tool.package], { cwd, env: goEnvironment(tool) })).trim();
}

/** The path of a tool, which may not be built yet. */
export function toolPath(name: ToolName): string {
  return join(cacheRoot, "tools", `${name}-${fingerprint(definitionOf(name))}`, name);
}

export async function buildTools(names: readonly ToolName[]): Promise<void> {
  for (const name of names) {
    if (!existsSync(toolPath(name))) await build(name);
  }
}

async function build(name: ToolName): Promise<void> {
  const tool = definitionOf(name);
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

function goEnvironment({ moduleFile = "go.mod" }: GoTool): Record<string, string> {
  return { CGO_ENABLED: "0", GOFLAGS: `-mod=readonly -modfile=${moduleFile} -buildvcs=false -trimpath` };
}

async function goBuild(tool: GoTool, output: string, progress: Step): Promise<void> {
  const cwd = moduleFolder(tool);
  const env = goEnvironment(tool);
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
  for (const file of sourceFiles(tool)) hash.update(file).update(readFileSync(join(folder, file)));
  return hash.digest("hex").slice(0, 12);
}

/** Without the module files of other versions. */
function sourceFiles(tool: GoTool): string[] {
  const { moduleFile = "go.mod" } = tool;
  const own = new Set([moduleFile, moduleFile.replace(/mod$/, "sum")]);
  const files = readdirSync(moduleFolder(tool)).toSorted();
  return files.filter((file) => !/\.(?:mod|sum)$/.test(file) || own.has(file));
}

function moduleFolder(tool: GoTool): string {
  return join(repositoryRoot, "hack/cluster/go", tool.module);
}

/** The source folder of a dependency of a tool, for files that are not compiled. */
export async function dependencyFolder(name: ToolName, module: string): Promise<string> {
  const env = { GOFLAGS: "-mod=readonly" };
  return (
    await run(["go", "list", "-m", "-f", "{{.Dir}}", module], { cwd: moduleFolder(definitionOf(name)), env })
  ).trim();
}
