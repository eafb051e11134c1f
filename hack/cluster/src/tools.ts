/**
 * The programs of the cluster and the tests. Most are built from Go modules, once, and cached with a name that depends on
 * their sources.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

import { extractFromPackage, type DebianTool } from "./debian-tool.ts";
import { kubernetesBuild } from "./kubernetes.ts";
import { cacheRoot, repositoryRoot } from "./paths.ts";
import { step } from "./progress.ts";
import { CommandFailed, run } from "./shell.ts";

interface GoTool {
  /** The folder in hack/cluster/go with the go.mod that pins the version. */
  readonly module: string;
  /** If it is not go.mod. */
  readonly moduleFile?: string;
  readonly package: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Build tags. */
  readonly tags?: readonly string[];
  /** Contains C code, so that it needs a C compiler. */
  readonly cgo?: true;
  /** Minutes of a first build on two cores, shown when it starts. */
  readonly minutes: number;
  /** Not needed by the cluster itself. */
  readonly optional?: true;
}

// renovate: datasource=go depName=github.com/pulumi/pulumi/pkg/v3
export const pulumiVersion = "3.259.0";
/** Of the provider for Kubernetes: that of the package @pulumi/kubernetes in the examples. */
// renovate: datasource=npm depName=@pulumi/kubernetes
export const providerVersion = "4.23.0";
// renovate: datasource=go depName=github.com/pulumi/pulumi-yaml
const yamlHostVersion = "1.30.1";
// renovate: datasource=go depName=github.com/argoproj/argo-cd/v3
const argoCdVersion = "3.2.0";

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
    variables: { "github.com/pulumi/pulumi-yaml/pkg/version.Version": `v${yamlHostVersion}` },
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
  "pulumi-language-java": {
    module: "pulumi-language-java",
    package: "github.com/pulumi/pulumi-java/pkg/cmd/pulumi-language-java",
    minutes: 2,
    optional: true,
  },
  "language-host": { module: "language-host", package: ".", minutes: 1 },
  "pulumi-resource-kubernetes": {
    module: "kubernetes-provider",
    package: ".",
    variables: { "main.version": providerVersion },
    minutes: 2,
    optional: true,
  },
  coredns: { module: "coredns", package: ".", minutes: 1, optional: true },
  argocd: {
    module: "argocd",
    package: "github.com/argoproj/argo-cd/v3/cmd",
    variables: { "github.com/argoproj/argo-cd/v3/common.version": argoCdVersion },
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
  // With SQLite, which is C code.
  gitea: {
    module: "gitea",
    package: "code.gitea.io/gitea",
    tags: ["sqlite", "sqlite_unlock_notify"],
    cgo: true,
    minutes: 3,
    optional: true,
  },
  pause: { module: "pause", package: ".", minutes: 1 },
  // From its Go module, it takes more than two minutes of both cores to download and build (measured with 3.15).
  promtool: { debianPackage: "prometheus", file: "usr/bin/promtool", optional: true },
  prometheus: { debianPackage: "prometheus", file: "usr/bin/prometheus", optional: true },
  "source-controller": {
    module: "source-controller",
    package: "github.com/fluxcd/source-controller",
    minutes: 3,
    optional: true,
  },
} satisfies Record<string, GoTool | DebianTool>;

export type ToolName = keyof typeof tools;
type GoToolName = { [Name in ToolName]: (typeof tools)[Name] extends GoTool ? Name : never }[ToolName];

export const toolNames = Object.keys(tools) as ToolName[];

/** The tools that the cluster needs. */
export const clusterTools = toolNames.filter((name) => (tools[name] as GoTool | DebianTool).optional === undefined);

/** The variable KUBE selects the version of Kubernetes. */
function definitionOf(name: GoToolName): GoTool {
  const tool: GoTool = tools[name];
  return name === "kube" ? { ...tool, ...kubernetesBuild(process.env["KUBE"]) } : tool;
}

const isGoTool = (name: ToolName): name is GoToolName => !("debianPackage" in tools[name]);

/** The source folder of a tool's module, for its other files. */
export async function moduleSources(name: GoToolName): Promise<string> {
  const tool = definitionOf(name);
  const cwd = moduleFolder(tool);
  return (await run(["go", "list", "-f", "{{.Module.Dir}}", tool.package], { cwd, env: goEnvironment(tool) })).trim();
}

/** The path of a tool, which may not be built yet. */
export function toolPath(name: ToolName): string {
  const version = isGoTool(name) ? fingerprint(definitionOf(name)) : `debian-${process.arch}`;
  return join(cacheRoot, "tools", `${name}-${version}`, name);
}

/** Downloads the modules of the next tools while one is compiled: neither the network nor the processor waits for the other. */
export async function buildTools(names: readonly ToolName[]): Promise<void> {
  const missing = names.filter((name) => !existsSync(toolPath(name)));
  const downloads = downloadInOrder(missing.filter(isGoTool));
  for (const name of missing) {
    if (isGoTool(name)) await build(name, downloads.get(name));
    else await extract(name);
  }
}

/** For each tool, the number of its packages, once the modules that contain them are downloaded. */
function downloadInOrder(names: readonly GoToolName[]): Map<GoToolName, Promise<number>> {
  const downloads = new Map<GoToolName, Promise<number>>();
  let previous = Promise.resolve(0);
  for (const name of names) {
    previous = previous.then(async () => await downloadModules(definitionOf(name)));
    downloads.set(name, previous);
  }
  // The tool whose download fails reports it.
  previous.catch(() => undefined);
  return downloads;
}

async function downloadModules(tool: GoTool): Promise<number> {
  const options = { cwd: moduleFolder(tool), env: goEnvironment(tool) };
  return (await run(["go", "list", "-deps", tool.package], options)).trimEnd().split("\n").length;
}

async function build(name: GoToolName, downloaded: Promise<number> | undefined): Promise<void> {
  const tool = definitionOf(name);
  await step(`building ${name} (about ${tool.minutes} min the first time, then cached)`, async (progress) => {
    progress.report("downloading modules");
    const total = (await downloaded) ?? 0;
    const report = (compiled: number): void =>
      progress.report(compiled < total ? `${compiled} of ${total} packages` : "linking");
    await intoCache(name, async (folder) => await goBuild(tool, join(folder, name), report));
  });
}

async function extract(name: Exclude<ToolName, GoToolName>): Promise<void> {
  const tool: DebianTool = tools[name];
  await step(`downloading ${name} from the Debian package ${tool.debianPackage}`, async () => {
    await intoCache(name, async (folder) => await extractFromPackage(tool, folder));
  });
}

/** `fill` puts the tool into a folder, which then becomes visible as a whole. */
async function intoCache(name: ToolName, fill: (folder: string) => Promise<void>): Promise<void> {
  const folder = join(toolPath(name), "..");
  const draft = `${folder}.${process.pid}`;
  await mkdir(draft, { recursive: true });
  try {
    await fill(draft);
    await rm(folder, { recursive: true, force: true });
    await rename(draft, folder);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

function goEnvironment({ moduleFile = "go.mod", tags = [], cgo }: GoTool): Record<string, string> {
  const flags = ["-mod=readonly", `-modfile=${moduleFile}`, "-buildvcs=false", "-trimpath"];
  if (tags.length > 0) flags.push(`-tags=${tags.join(",")}`);
  return {
    CGO_ENABLED: cgo ? "1" : "0",
    GOFLAGS: flags.join(" "),
    // The compiler rarely needs to collect garbage: without it, a build takes a sixth less time.
    GOGC: "off",
    GOMEMLIMIT: `${Math.floor(totalmem() / cpus().length / 2)}`,
  };
}

async function goBuild(tool: GoTool, output: string, report: (compiled: number) => void): Promise<void> {
  const cwd = moduleFolder(tool);
  const env = goEnvironment(tool);
  // `-v` prints each package as it is compiled: the only progress that the Go tool shows.
  // The linker drops the debug information; not to generate it saves the compiler about a tenth of its time.
  const flags = ["-gcflags=all=-dwarf=false", "-ldflags", linkerFlags(tool)];
  const command = ["go", "build", "-v", ...flags, "-o", output, tool.package];
  const child = Bun.spawn(command, { cwd, env: { ...process.env, ...env }, stdout: "ignore", stderr: "pipe" });
  let lines = "";
  let compiled = 0;
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
    lines = (lines + chunk).slice(-4000);
    compiled += chunk.split("\n").length - 1;
    report(compiled);
  }
  const code = await child.exited;
  if (code !== 0) throw new CommandFailed(command, { code, stdout: "", stderr: lines });
}

function linkerFlags(tool: GoTool): string {
  const variables = Object.entries(tool.variables ?? {}).map(([name, value]) => `-X ${name}=${value}`);
  return ["-s -w", ...variables].join(" ");
}

function fingerprint(tool: GoTool): string {
  const hash = createHash("sha256").update(
    JSON.stringify([tool.package, tool.variables, process.arch, ...(tool.tags ?? [])]),
  );
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
export async function dependencyFolder(name: GoToolName, module: string): Promise<string> {
  const env = { GOFLAGS: "-mod=readonly" };
  return (
    await run(["go", "list", "-m", "-f", "{{.Dir}}", module], { cwd: moduleFolder(definitionOf(name)), env })
  ).trim();
}
