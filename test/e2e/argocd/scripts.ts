/** Our scripts for Argo CD, run by Argo CD's own command on one object. */
import { mkdtempSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, stringify } from "yaml";

import { toolPath } from "@pko/cluster";
import type { KubeObject } from "@pko/kube";

const folder = mkdtempSync(join(tmpdir(), "pko-argocd-"));

export const settingsFile = join(import.meta.dir, "../../../deploy/argocd/argocd-cm.yaml");

interface Health {
  readonly status: string;
  readonly message: string;
}

export async function healthOf(object: KubeObject): Promise<Health> {
  const output = await askArgoCd("health", object);
  const [, status = "", message = ""] = /^STATUS: (\w+)\nMESSAGE: ([^]*)\n$/.exec(output) ?? [];
  return { status, message };
}

/** The names of those that are offered. */
export async function actionsOf(object: KubeObject): Promise<string[]> {
  const [, ...lines] = (await askArgoCd("list-actions", object)).trimEnd().split("\n");
  return lines.flatMap((line) => (line.endsWith("false") ? [line.split(" ")[0] ?? ""] : []));
}

/** The lines that the action adds to the object's YAML. */
export async function changesBy(action: string, object: KubeObject): Promise<string[]> {
  const output = await askArgoCd("run-action", object, action);
  return output.split("\n").flatMap((line) => (line.startsWith("> ") ? [line.slice(2).trim()] : []));
}

let made = 0;

async function askArgoCd(what: string, object: KubeObject, ...more: readonly string[]): Promise<string> {
  const file = join(folder, `${++made}.json`);
  await writeFile(file, JSON.stringify(object));
  const settings = ["--argocd-cm-path", await configMapFile()];
  const child = Bun.spawn(
    [toolPath("argocd"), "admin", "settings", "resource-overrides", what, file, ...more, ...settings],
    {
      stdout: "pipe",
      stderr: "pipe",
      // Settings of whoever runs the tests change nothing.
      env: { PATH: process.env["PATH"] ?? "", HOME: folder },
    },
  );
  const [output, trouble, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`argocd ${what} ended with ${code}: ${trouble}`);
  return output;
}

/** The patch, as it makes a ConfigMap. */
async function configMapFile(): Promise<string> {
  const file = join(folder, "argocd-cm.yaml");
  const labels = { "app.kubernetes.io/part-of": "argocd" };
  const metadata = { name: "argocd-cm", namespace: "argocd", labels };
  const patch = parse(readFileSync(settingsFile, "utf8")) as object;
  await writeFile(file, stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, ...patch }));
  return file;
}
