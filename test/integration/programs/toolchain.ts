/**
 * The Pulumi CLI of this machine with what the examples in TypeScript, Python and Go need: language hosts, packages and the
 * provider for Kubernetes. Packages are downloaded once and cached.
 */
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { cacheRoot, dependencyFolder, goBuildEnv, goProgramEnv, repositoryRoot, run, toolPath } from "@pko/cluster";

export const languages = ["typescript", "python", "go"] as const;
export type Language = (typeof languages)[number];

const hosts = ["pulumi-language-nodejs", "pulumi-language-python", "pulumi-language-go"] as const;

/** The language hosts in a folder, each behind the wrapper that passes it the options of its project. */
export async function installHosts(folder: string): Promise<string> {
  for (const name of ["bin", "hosts"]) mkdirSync(join(folder, name));
  for (const host of hosts) {
    copyFileSync(toolPath("language-host"), join(folder, "bin", host));
    copyFileSync(toolPath(host), join(folder, "hosts", host));
  }
  const sdk = await dependencyFolder("pulumi-language-python", "github.com/pulumi/pulumi/sdk/v3");
  const script = "pulumi-language-python-exec";
  copyFileSync(join(sdk, "python/cmd", script), join(folder, "hosts", script));
  return join(folder, "bin");
}

/** Copies an example in one language, with its installed packages. */
export async function checkOut(example: string, language: Language, folder: string): Promise<void> {
  cpSync(join(repositoryRoot, "examples", example, language), folder, { recursive: true });
  switch (language) {
    case "typescript":
      symlinkSync(await npmPackages(folder), join(folder, "node_modules"));
      return;
    case "python":
      symlinkSync(await pythonPackages(folder), join(folder, "venv"));
      return;
    case "go":
      return;
  }
}

const npmPackages = (project: string): Promise<string> =>
  cached("package-lock.json", project, async (draft) => {
    for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(project, name), join(draft, name));
    await run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: draft });
  }).then((folder) => join(folder, "node_modules"));

const pythonPackages = (project: string): Promise<string> =>
  cached("requirements.txt", project, async (draft) => {
    await run(["python3", "-m", "venv", draft]);
    const pip = [join(draft, "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    await run([...pip, "--requirement", join(project, "requirements.txt")]);
  });

/** The folder that `fill` has filled for this content of the file. Projects with the same packages share it. */
async function cached(file: string, project: string, fill: (draft: string) => Promise<void>): Promise<string> {
  const text = readFileSync(join(project, file), "utf8").replaceAll(/^.*"name":.*$/gm, "");
  const hash = createHash("sha256").update(text);
  const folder = join(cacheRoot, `packages-${hash.digest("hex").slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  try {
    await fill(draft);
    renameSync(draft, folder);
    return folder;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

interface Settings {
  /** The folder of the language hosts. */
  readonly hosts: string;
  /** The folder of the backend. */
  readonly state: string;
  readonly kubeconfig: string;
}

/** Runs the CLI in projects, with a file backend and a stack for each of them. */
export class PulumiUser {
  readonly #env: Readonly<Record<string, string>>;

  constructor({ hosts, state, kubeconfig }: Settings) {
    const folders = [hosts, dirname(toolPath("pulumi-resource-kubernetes")), process.env["PATH"] ?? ""];
    this.#env = {
      ...goProgramEnv,
      ...goBuildEnv,
      // Without checking types, which takes most of the time: the API server checks what the programs declare.
      PULUMI_NODEJS_TRANSPILE_ONLY: "true",
      PATH: folders.join(":"),
      KUBECONFIG: kubeconfig,
      PULUMI_HOME: join(state, "home"),
      PULUMI_BACKEND_URL: `file://${state}`,
      PULUMI_CONFIG_PASSPHRASE: "passphrase",
      PULUMI_SKIP_UPDATE_CHECK: "true",
    };
  }

  /** Creates the stack of a project and deploys it. */
  async deploy(project: string, config: Readonly<Record<string, string>>): Promise<void> {
    await this.#run(project, ["stack", "init", basename(project)]);
    const pairs = Object.entries(config).map(([name, value]) => `--config=${name}=${value}`);
    await this.#run(project, ["up", "--yes", "--skip-preview", ...pairs]);
  }

  async destroy(project: string): Promise<void> {
    await this.#run(project, ["destroy", "--yes", "--skip-preview"]);
  }

  async #run(project: string, args: readonly string[]): Promise<void> {
    const command = [toolPath("quick-pulumi"), ...args, "--non-interactive", "--color=never"];
    await run(command, { cwd: project, env: this.#env });
  }
}
