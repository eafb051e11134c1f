/** kubectl bound to one kubeconfig, for tests of user commands. */
import { goProgramEnv, toolPath } from "@pko/cluster";

interface KubectlOptions {
  /** Standard input. */
  readonly input?: string;
}

/** Returns standard output; throws with standard error when kubectl fails. */
export type Kubectl = (args: readonly string[], options?: KubectlOptions) => Promise<string>;

interface KubectlBinding {
  readonly kubeconfig: string;
  readonly cacheFolder: string;
}

export function kubectlFor(binding: KubectlBinding): Kubectl {
  return async (args, options = {}) => {
    const flags = [`--kubeconfig=${binding.kubeconfig}`, `--cache-dir=${binding.cacheFolder}`];
    const child = Bun.spawn([toolPath("kubectl"), ...flags, ...args], {
      stdin: new Blob([options.input ?? ""]),
      stdout: "pipe",
      stderr: "pipe",
      env: { PATH: process.env["PATH"] ?? "", ...goProgramEnv },
    });
    const [output, error, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")} exited with code ${code}: ${error.trim()}`);
    return output;
  };
}
