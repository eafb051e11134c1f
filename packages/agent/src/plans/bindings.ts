/** Reads what a plan depends on, and compares it with what a plan was made for. */
import { access, constants, open, realpath, rm } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { delimiter, dirname, join } from "node:path";
import type { Operation } from "@pko/rpc";
import { parse } from "yaml";
import { done, failed, type Outcome } from "../outcome.ts";
import type { PulumiCli } from "../pulumi/cli.ts";
import { explainEnd } from "../pulumi/explain.ts";
import { keyNames } from "../pulumi/project/settings.ts";
import { fileDigest } from "../system/digest.ts";
import { readIfExists } from "../system/files.ts";
import type { RunTarget } from "../workspace/state.ts";
import { folderContents } from "./contents.ts";
import { stableEnvironment } from "./environment.ts";
import { isUndecryptable } from "./refusal.ts";
import { keyedHash, type Bindings, type Bound } from "./sealed-plan.ts";

export interface BindingContext {
  /** A file for the exported state, in a folder that only the agent can read. */
  readonly stateFile: string;
  readonly cli: PulumiCli;
  readonly target: RunTarget;
  readonly operation: Operation;
  readonly hostname: string;
  /** The image of the pod's container, if the operator passes it. */
  readonly image?: string | undefined;
}

export type ReadBindings =
  | { readonly kind: "read"; readonly bindings: Bindings }
  /** The stack's key does not decrypt its configuration. */
  | { readonly kind: "undecryptable" }
  | { readonly kind: "failed"; readonly failure: Extract<Outcome<never>, { ok: false }>["failure"] };

export async function readBindings(key: string, context: BindingContext): Promise<ReadBindings> {
  const { cli, target, operation } = context;
  const [config, state, version] = await Promise.all([readConfig(context), readState(context), cli.version()]);
  if (config === "undecryptable") return { kind: "undecryptable" };
  for (const outcome of [config, state, version]) if (!outcome.ok) return { kind: "failed", failure: outcome.failure };
  if (!config.ok || !state.ok || !version.ok) throw new Error("unreachable");
  const env = await cli.ownEnvironment();
  const pod = { hostname: context.hostname, addresses: podAddresses() };
  const hash = (value: unknown): string => keyedHash(key, value);
  const { stateTime, stackKey, digest } = state.value;
  return {
    kind: "read",
    bindings: {
      target: hash([env["PULUMI_BACKEND_URL"] || (target.backend ?? null), target.project.name, target.stack]),
      program: hash(target.contents ?? (await folderContents(target.projectFolder))),
      options: hash(optionsOf(operation)),
      inputs: hash({ config: config.value, environment: stableEnvironment(env, pod) }),
      image: hash([context.image ?? null, (await languageHost(target.project.runtime, context, env)) ?? null]),
      cli: hash(version.value.text),
      stackKey: hash(stackKey ?? null),
      state: hash(digest),
      ...(stateTime !== undefined && { stateTime }),
    },
  };
}

/** What an operation does. A preview and the update that applies its plan have the same. */
export function optionsOf(operation: Operation): Record<string, unknown> {
  const { targets = [], targetDependents = false, runProgram = false } = operation;
  const common = { targets: targets.toSorted(), targetDependents, runProgram };
  switch (operation.kind) {
    case "preview":
    case "up": {
      const { refresh = false, replace = [], expectNoChanges = false } = operation;
      return { kind: "up", ...common, refresh, replace: replace.toSorted(), expectNoChanges };
    }
    case "refresh":
      return { kind: "refresh", ...common };
    case "destroy": {
      const { refresh = false, remove = false } = operation;
      return { kind: "destroy", ...common, refresh, remove };
    }
  }
}

/** The configuration with plain values, because ciphertexts differ between pods, and the rest of the settings file. */
async function readConfig({ cli, target }: BindingContext): Promise<Outcome<unknown> | "undecryptable"> {
  const { stack, settings, projectFolder } = target;
  // ESC environments are not opened: their credentials may be new each time.
  const flags = ["--json", "--show-secrets", "--open=false", `--stack=${stack}`, `--config-file=${settings}`];
  const end = await cli.run({ args: ["config", ...flags], cwd: projectFolder });
  if (end.kind !== "exited" || end.code !== 0) {
    if (end.kind === "exited" && isUndecryptable(end.stderr)) return "undecryptable";
    return explainEnd(end, "the configuration cannot be read", cli.redactor);
  }
  try {
    const values: unknown = JSON.parse(end.stdout);
    return done({ values, rest: withoutConfig(parse((await readIfExists(settings)) ?? "", { logLevel: "error" })) });
  } catch {
    // Without the text, which contains secrets.
    return failed("other", "the configuration cannot be read: the CLI did not print JSON");
  }
}

function withoutConfig(settings: unknown): unknown {
  const omitted: ReadonlySet<string> = new Set(["config", ...keyNames]);
  if (typeof settings !== "object" || settings === null) return settings;
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !omitted.has(name)));
}

interface StateFacts {
  readonly stateTime?: string;
  readonly stackKey?: string;
}

/** Via a file, because a state may be too large for the memory of a small pod. Secrets in it are encrypted. */
async function readState(context: BindingContext): Promise<Outcome<StateFacts & { readonly digest: string }>> {
  const { cli, target, stateFile } = context;
  try {
    const args = ["stack", "export", `--stack=${target.stack}`, `--file=${stateFile}`];
    const end = await cli.run({ args, cwd: target.projectFolder });
    if (end.kind !== "exited" || end.code !== 0) return explainEnd(end, "the state cannot be read", cli.redactor);
    return done({ ...stateFacts(await readHead(stateFile)), digest: await fileDigest(stateFile) });
  } finally {
    await rm(stateFile, { force: true });
  }
}

const headBytes = 64 * 1024;

async function readHead(path: string): Promise<string> {
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    return buffer.subarray(0, bytesRead).toString("utf8");
  } finally {
    await file.close();
  }
}

/**
 * From the start of an export. Both fields precede the resources, and only the deployment's own fields have this
 * indentation.
 */
export function stateFacts(exported: string): StateFacts {
  const stateTime = /^ {8}"manifest": \{[^}]*?^ {12}"time": "([^"]+)"/m.exec(exported)?.[1];
  const stackKey = /^ {8}"secrets_providers": (\{[\s\S]*?^ {8}\})/m.exec(exported)?.[1];
  return { ...(stateTime !== undefined && { stateTime }), ...(stackKey !== undefined && { stackKey }) };
}

/** The program that runs the language: an image with the same tag may have another one. */
async function languageHost(
  runtime: string,
  { cli }: BindingContext,
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const folders = [dirname(cli.file), ...(env["PATH"] ?? "").split(delimiter)];
  for (const folder of folders) {
    const path = join(folder, `pulumi-language-${runtime}`);
    try {
      await access(path, constants.X_OK);
      return await fileDigest(await realpath(path));
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

function podAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) =>
    (addresses ?? []).filter(({ internal }) => !internal).map(({ address }) => address),
  );
}

const bound: readonly Bound[] = ["target", "program", "options", "inputs", "image", "cli", "stackKey"];

/** Whether the state is another one. Its time alone does not show that: `pulumi stack import` keeps it. */
export function isStale(planned: Bindings, current: Bindings): boolean {
  return planned.stateTime !== current.stateTime || planned.state !== current.state;
}

export function changedBindings(planned: Bindings, current: Bindings): Bound[] {
  return bound.filter((name) => planned[name] !== current[name]);
}
