/** Runs our Argo CD scripts on one object with the argocd CLI. */
import { mkdtempSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, stringify } from "yaml";

import { goProgramEnv, toolPath } from "@pko/cluster";
import type { KubeObject } from "@pko/kube";

const folder = mkdtempSync(join(tmpdir(), "pko-argocd-"));

export const settingsFile = join(import.meta.dir, "../../../deploy/argocd/argocd-cm.yaml");

interface Health {
  readonly status: string;
  readonly message: string;
}

export async function healthOf(object: KubeObject): Promise<Health> {
  const output = await runScript("health", object);
  const [, status = "", message = ""] = /^STATUS: (\w+)\nMESSAGE: ([^]*)\n$/.exec(output) ?? [];
  return { status, message };
}

/** The names of the enabled actions. */
export async function actionsOf(object: KubeObject): Promise<string[]> {
  const [, ...lines] = (await runScript("list-actions", object)).trimEnd().split("\n");
  return lines.flatMap((line) => (line.endsWith("false") ? [line.split(" ")[0] ?? ""] : []));
}

/** The lines that the action adds to the object's YAML. */
export async function changesBy(action: string, object: KubeObject): Promise<string[]> {
  const output = await runScript("run-action", object, action);
  return output.split("\n").flatMap((line) => (line.startsWith("> ") ? [line.slice(2).trim()] : []));
}

let files = 0;

async function runScript(what: string, object: KubeObject, ...more: readonly string[]): Promise<string> {
  const file = join(folder, `${++files}.json`);
  await writeFile(file, JSON.stringify(object));
  const settings = ["--argocd-cm-path", await configMapFile()];
  const child = Bun.spawn(
    [toolPath("argocd"), "admin", "settings", "resource-overrides", what, file, ...more, ...settings],
    {
      stdout: "pipe",
      stderr: "pipe",
      // Ignores the settings of the user who runs the tests.
      env: { PATH: process.env["PATH"] ?? "", HOME: folder, ...goProgramEnv },
    },
  );
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`argocd ${what} failed with exit code ${code}: ${errors}`);
  return output;
}

let configMap: Promise<string> | undefined;
/** Written once, because other processes may be reading it. */
const configMapFile = (): Promise<string> => (configMap ??= writeConfigMap());

/** Writes the ConfigMap that results from our patch. */
async function writeConfigMap(): Promise<string> {
  const file = join(folder, "argocd-cm.yaml");
  const labels = { "app.kubernetes.io/part-of": "argocd" };
  const metadata = { name: "argocd-cm", namespace: "argocd", labels };
  const patch = parse(readFileSync(settingsFile, "utf8")) as object;
  await writeFile(file, stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, ...patch }));
  return file;
}
