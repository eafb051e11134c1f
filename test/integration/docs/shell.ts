/** Runs the commands of a page in the root folder of the repository. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { goProgramEnv, toolPath } from "@pko/cluster";
import { chartAddress, manifestUrl } from "@pko/install";
import { programPath } from "@pko/testkit";

import { root } from "../../docs/pages.ts";

export class Shell implements Disposable {
  readonly #bin = mkdtempSync(join(tmpdir(), "shell-"));
  readonly #kubeconfig: string;

  constructor({ kubeconfig }: { readonly kubeconfig: string }) {
    this.#kubeconfig = kubeconfig;
    for (const [name, program] of [
      ["kubectl", toolPath("kubectl")],
      ["helm", toolPath("helm")],
      ["kubectl-pulumi", `${process.execPath} ${programPath("cli")}`],
    ] as const) {
      writeFileSync(join(this.#bin, name), `#!/bin/sh\nexec ${program} "$@"\n`);
      chmodSync(join(this.#bin, name), 0o755);
    }
  }

  /** What the command prints. `input` is what a user types. */
  async run(line: string, input = ""): Promise<string> {
    // The chart and the manifest of this repository instead of the published ones. Helm then ignores the version.
    const local = line
      .replace(chartAddress, "charts/pulumi-kubernetes-operator")
      .replace(manifestUrl, "deploy/quickstart/install.yaml");
    const child = Bun.spawn(["sh", "-c", local], {
      cwd: root,
      stdin: Buffer.from(input),
      stdout: "pipe",
      stderr: "pipe",
      env: {
        ...goProgramEnv,
        PATH: `${this.#bin}:${process.env["PATH"]}`,
        HOME: this.#bin,
        KUBECONFIG: this.#kubeconfig,
      },
    });
    const [output, errors, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`${line}: ${errors || output}`);
    return output;
  }

  [Symbol.dispose](): void {
    rmSync(this.#bin, { recursive: true });
  }
}
