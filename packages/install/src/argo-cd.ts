/**
 * Argo CD's settings for our kinds, as a patch of its ConfigMap. The scripts are in deploy/argocd, in the same layout as
 * Argo CD's own scripts: group/Kind/health.lua, group/Kind/actions/name/action.lua.
 */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { kindDefinitions } from "@pko/api";
import { stringify } from "yaml";

const folder = fileURLToPath(new URL("../../../deploy/argocd", import.meta.url));

export async function argoCdSettings(): Promise<object> {
  const data: Record<string, string> = {};
  for (const { group, kind } of kindDefinitions) {
    const scripts = join(folder, group, kind);
    data[`resource.customizations.health.${group}_${kind}`] = await readFile(join(scripts, "health.lua"), "utf8");
    const actions = join(scripts, "actions");
    if (existsSync(actions)) data[`resource.customizations.actions.${group}_${kind}`] = await actionsText(actions);
  }
  return { data };
}

async function actionsText(actions: string): Promise<string> {
  const entries = await readdir(actions, { withFileTypes: true });
  const names = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).toSorted();
  const definitions = names.map(async (name) => ({
    name,
    "action.lua": await readFile(join(actions, name, "action.lua"), "utf8"),
  }));
  const discovery = await readFile(join(actions, "discovery.lua"), "utf8");
  return stringify({ "discovery.lua": discovery, definitions: await Promise.all(definitions) }, { lineWidth: 0 });
}
