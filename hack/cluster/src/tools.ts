/**
 * The programs of the cluster and the tests. Most are built from Go modules, once, and cached with a name that depends on
 * their sources.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { copyFile, cp, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

import { extractFromPackage, type DebianTool } from "./debian-tool.ts";
import { goBuildFlags } from "./go-programs.ts";
import { kubernetesBuild } from "./kubernetes.ts";
import { cacheRoot, repositoryRoot } from "./paths.ts";
import { step } from "./progress.ts";
import { pulumiBuild } from "./pulumi.ts";
import { CommandFailed, run } from "./shell.ts";
import { together } from "./together.ts";

const goModules = join(repositoryRoot, "hack/cluster/go");

interface GoTool {
  /** The folder in hack/cluster/go with the go.mod that pins the version. */
  readonly module: string;
  /** If it is not go.mod. */
  readonly moduleFile?: string;
  readonly package: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Build tags. */
  readonly tags?: readonly string[];
  /** The file name of the program, if it is not that of the tool. */
  readonly file?: string;
  /** Modules that are replaced by a package: the files of a folder in hack/cluster/go. */
  readonly replacements?: Readonly<Record<string, string>>;
  /** Files of Go's standard library that are replaced by a file in hack/cluster/go. */
  readonly overlay?: Readonly<Record<string, string>>;
  /** Contains C code, so that it needs a C compiler. */
  readonly cgo?: true;
  /** Minutes of a first build on two cores, shown when it starts. */
  readonly minutes: number;
  /** Not needed by the cluster itself. */
  readonly optional?: true;
}

/** Of the provider for Kubernetes: that of the package @pulumi/kubernetes in the examples. */
// renovate: datasource=npm depName=@pulumi/kubernetes
export const providerVersion = "4.23.0";
// renovate: datasource=go depName=github.com/argoproj/argo-cd/v3
const argoCdVersion = "3.5.3";

const tools = {
  kubectl: { module: "kube", package: "k8s.io/kubernetes/cmd/kubectl", minutes: 2 },
  kube: { module: "kube", package: ".", minutes: 6 },
  pulumi: {
    module: "pulumi",
    package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    minutes: 4,
  },
  // For tests that start it on this machine. Images, and so end-to-end tests and benchmarks, have the unchanged one.
  "quick-pulumi": {
    module: "pulumi",
    package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    file: "pulumi",
    replacements: {
      "github.com/nbutton23/zxcvbn-go": "quick-zxcvbn",
      "github.com/ccojocar/zxcvbn-go": "quick-zxcvbn",
    },
    overlay: { "crypto/pbkdf2/pbkdf2.go": "quick-pbkdf2/pbkdf2.go" },
    minutes: 4,
    optional: true,
  },
  "pulumi-language-yaml": {
    // With the versions of the CLI: most of its packages are compiled already.
    module: "pulumi",
    package: "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml",
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

/** The variables KUBE and PULUMI select the versions of Kubernetes and of the Pulumi CLI. */
function definitionOf(name: GoToolName): GoTool {
  const tool: GoTool = tools[name];
  if (name === "kube" || name === "kubectl") return { ...tool, ...kubernetesBuild(process.env["KUBE"]) };
  if (tool.module !== "pulumi") return tool;
  const program = name === "pulumi-language-yaml" ? name : "pulumi";
  return { ...tool, ...pulumiBuild(program, process.env["PULUMI"]) };
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
  if (!isGoTool(name)) return join(cacheRoot, "tools", `${name}-debian-${process.arch}`, name);
  const tool = definitionOf(name);
  return join(cacheRoot, "tools", `${name}-${fingerprint(tool)}`, tool.file ?? name);
}

/** Builds the tools that do not exist yet. */
export async function buildTools(names: readonly ToolName[]): Promise<void> {
  const abort = new AbortController();
  await together(abort, [...startTools(names, abort.signal).values()]);
}

/**
 * Builds the tools one after the other, without idle time: while one is compiled, the modules of the next are downloaded,
 * and while one is linked, which uses a single core, the next is compiled. Returns the end of each build.
 */
export function startTools(names: readonly ToolName[], signal: AbortSignal): Map<ToolName, Promise<void>> {
  const missing = names.filter((name) => !existsSync(toolPath(name)));
  const downloads = downloadInOrder(missing.filter(isGoTool), signal);
  const builds = new Map<ToolName, Promise<void>>();
  let compiled: Promise<void> = downloads.size > 0 ? compileStandardLibrary(signal) : Promise.resolve();
  for (const name of missing) {
    const linking = Promise.withResolvers<void>();
    const build = { signal, packages: downloads.get(name as GoToolName), linking: linking.resolve };
    const built = compiled.then(async () => await (isGoTool(name) ? buildGoTool(name, build) : extract(name)));
    builds.set(name, built);
    compiled = Promise.race([linking.promise, built]);
  }
  // The tool whose build fails reports it, and so do the next ones.
  compiled.catch(() => undefined);
  return builds;
}

/** Most of what every tool needs of it, while the modules of the first one are downloaded. */
async function compileStandardLibrary(signal: AbortSignal): Promise<void> {
  const tool = definitionOf("pause");
  const command = ["go", "build", "net/http"];
  await run(command, { cwd: moduleFolder(tool), env: goEnvironment(tool), signal });
}

/** For each tool, its packages, once the modules that contain them are downloaded. */
function downloadInOrder(
  names: readonly GoToolName[],
  signal: AbortSignal,
): Map<GoToolName, Promise<readonly string[]>> {
  const downloads = new Map<GoToolName, Promise<readonly string[]>>();
  let previous: Promise<readonly string[]> = Promise.resolve([]);
  for (const name of names) {
    previous = previous.then(async () => await downloadModules(definitionOf(name), signal));
    downloads.set(name, previous);
  }
  // The tool whose download fails reports it.
  previous.catch(() => undefined);
  return downloads;
}

/** Returns the packages of the tool: the last one is its own, which is compiled last. */
async function downloadModules(tool: GoTool, signal: AbortSignal): Promise<readonly string[]> {
  const options = { cwd: moduleFolder(tool), env: goEnvironment(tool), signal };
  return (await run(["go", "list", "-deps", tool.package], options)).trimEnd().split("\n");
}

interface GoBuild {
  readonly signal: AbortSignal;
  readonly packages: Promise<readonly string[]> | undefined;
  /** Called when everything is compiled. */
  readonly linking: () => void;
}

async function buildGoTool(name: GoToolName, { signal, packages, linking }: GoBuild): Promise<void> {
  const tool = definitionOf(name);
  await step(`building ${name} (about ${tool.minutes} min the first time, then cached)`, async (progress) => {
    progress.report("downloading modules");
    const all = (await packages) ?? [];
    let compiled = 0;
    const report = (name: string): void => {
      progress.report(name === all.at(-1) ? "linking" : `${++compiled} of ${all.length} packages`);
      if (name === all.at(-1)) linking();
    };
    await intoCache(name, async (folder) => await goBuild(tool, { folder, name, report, signal }));
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
  const flags = [...goBuildFlags, `-modfile=${moduleFile}`];
  if (tags.length > 0) flags.push(`-tags=${tags.join(",")}`);
  return {
    CGO_ENABLED: cgo ? "1" : "0",
    GOFLAGS: flags.join(" "),
    // The compiler rarely needs to collect garbage: without it, a build takes a sixth less time.
    GOGC: "off",
    GOMEMLIMIT: `${Math.floor(totalmem() / cpus().length / 2)}`,
  };
}

interface GoOutput {
  readonly folder: string;
  /** Of the file, if the tool has no other. */
  readonly name: string;
  /** Called with each package whose compilation starts. */
  readonly report: (name: string) => void;
  readonly signal: AbortSignal;
}

async function goBuild(source: GoTool, { folder, name, report, signal }: GoOutput): Promise<void> {
  const tool = await withReplacements(source, folder);
  const output = join(folder, tool.file ?? name);
  const overlay = await overlayFlags(tool, folder);
  // `-v` prints each package as it is compiled: the only progress that the Go tool shows.
  const command = ["go", "build", "-v", ...overlay, "-ldflags", linkerFlags(tool), "-o", output, tool.package];
  const child = Bun.spawn(command, {
    cwd: moduleFolder(tool),
    env: { ...process.env, ...goEnvironment(tool) },
    stdout: "ignore",
    stderr: "pipe",
    signal,
    // The Go tool then waits for the compilers that it has started.
    killSignal: "SIGINT",
  });
  let stderr = "";
  for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
    const unreported = stderr.slice(stderr.lastIndexOf("\n") + 1) + chunk;
    for (const line of unreported.split("\n").slice(0, -1)) report(line);
    stderr = (stderr + chunk).slice(-4000);
  }
  const code = await child.exited;
  if (code !== 0) throw new CommandFailed(command, { code, stdout: "", stderr });
}

/** Writes the module file to the folder, with the replacements. The Go tool finds the checksums beside it. */
async function withReplacements(tool: GoTool, folder: string): Promise<GoTool> {
  if (!tool.replacements) return tool;
  const { moduleFile = "go.mod", replacements } = tool;
  const [source, copy] = [join(moduleFolder(tool), moduleFile), join(folder, "go.mod")];
  const lines: string[] = [];
  for (const [module, replacement] of Object.entries(replacements)) {
    const target = join(folder, "replacements", module);
    await cp(join(goModules, replacement), target, { recursive: true });
    await writeFile(join(target, "go.mod"), `module ${module}\n`);
    lines.push(`replace ${module} => ${target}`);
  }
  await writeFile(copy, `${await readFile(source, "utf8")}\n${lines.join("\n")}\n`);
  await copyFile(source.replace(/mod$/, "sum"), join(folder, "go.sum"));
  return { ...tool, moduleFile: copy };
}

/** Without the overlay, the program only takes longer. Go rejects one for a standard library that it has downloaded as a module. */
async function overlayFlags({ overlay }: GoTool, folder: string): Promise<string[]> {
  if (!overlay) return [];
  const [library = "", modules = ""] = (await run(["go", "env", "GOROOT", "GOMODCACHE"])).trim().split("\n");
  if (library.startsWith(modules)) return [];
  const files: Record<string, string> = {};
  for (const [path, file] of Object.entries(overlay)) files[join(library, "src", path)] = join(goModules, file);
  const listed = join(folder, "overlay.json");
  await writeFile(listed, JSON.stringify({ Replace: files }));
  return [`-overlay=${listed}`];
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
  for (const [module, replacement] of Object.entries(tool.replacements ?? {})) {
    for (const file of readdirSync(join(goModules, replacement)).toSorted()) {
      hash.update(`${module}/${file}`).update(readFileSync(join(goModules, replacement, file)));
    }
  }
  for (const [path, file] of Object.entries(tool.overlay ?? {})) {
    hash.update(path).update(readFileSync(join(goModules, file)));
  }
  return hash.digest("hex").slice(0, 12);
}

/** Without the module files of other versions. */
function sourceFiles(tool: GoTool): string[] {
  const { moduleFile = "go.mod" } = tool;
  const own = new Set([moduleFile, moduleFile.replace(/mod$/, "sum")]);
  const files = readdirSync(moduleFolder(tool)).toSorted();
  return files.filter((file) => !/\.(?:mod|sum)$/.test(file) || own.has(file));
}

const moduleFolder = (tool: GoTool): string => join(goModules, tool.module);

/** The source folder of a dependency of a tool, for files that are not compiled. */
export async function dependencyFolder(name: GoToolName, module: string): Promise<string> {
  const env = { GOFLAGS: "-mod=readonly" };
  return (
    await run(["go", "list", "-m", "-f", "{{.Dir}}", module], { cwd: moduleFolder(definitionOf(name)), env })
  ).trim();
}
