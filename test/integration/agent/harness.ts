/** An agent for a test file, stopped after it, and programs to run. */
import { afterAll } from "bun:test";
import { dirname } from "node:path";
import { AgentWorkspace, type AgentOptions } from "@pko/agent/testing";
import { goProgramEnv, toolPath } from "@pko/cluster";
import type { Source } from "@pko/rpc";
import { programPath, waitFor } from "@pko/testkit";

export const pulumi = toolPath("quick-pulumi");
/** The CLI and its language hosts. */
export const tools = [pulumi, toolPath("pulumi-language-yaml"), toolPath("pulumi-language-nodejs")];
/** For a PATH. */
export const toolFolders = tools.map((path) => dirname(path));

export class TestWorkspace extends AgentWorkspace {
  constructor(options: Partial<AgentOptions> = {}) {
    super({
      pulumi,
      path: toolFolders,
      program: programPath("agent"),
      ...options,
      env: { ...goProgramEnv, ...options.env },
    });
    afterAll(() => this.dispose());
  }

  /** Waits for this text in the log, which may arrive later than the answers and the end of the agent. */
  async logged(text: RegExp): Promise<void> {
    await waitFor(() => text.test(this.log), { what: `${String(text)} in the log of the agent` });
  }
}

export function program(body: object, extra: Readonly<Record<string, string>> = {}): Source {
  // JSON is YAML.
  const project = JSON.stringify({ name: "demo", runtime: "yaml", ...body });
  return { kind: "files", files: { "Pulumi.yaml": project, ...extra } };
}

export function stash(input: unknown): object {
  return { type: "pulumi:index:Stash", properties: { input } };
}
