/** Project and settings files of repositories: YAML. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { parseConfigKey } from "../../../packages/agent/src/pulumi/project/config-key.ts";
import { loadProject } from "../../../packages/agent/src/pulumi/project/project.ts";
import {
  readCiphertext,
  readStackKeys,
  renderSettings,
  type SettingsLayer,
} from "../../../packages/agent/src/pulumi/project/settings.ts";
import { isInside } from "../../../packages/agent/src/system/files.ts";
import { lazyFolder } from "../engine/folder.ts";
import { hold, textOf, type Target } from "../engine/target.ts";

const rootFolder = lazyFolder();

const layer: SettingsLayer = {
  project: "p",
  keys: { encryptionsalt: "v1:salt" },
  settings: [
    { key: { key: "p:a", path: [] }, value: { kind: "plain", value: { b: ["c", 1] } } },
    { key: { key: "p:list", path: ["x", 0, "y"] }, value: { kind: "plain", value: "12" } },
    { key: { key: "p:token", path: [] }, value: { kind: "secure", ciphertext: "AAAA" } },
  ],
  environments: ["env/one"],
};

async function check(input: Uint8Array): Promise<void> {
  const text = textOf(input);
  await checkProject(text);
  checkSettings(text);
  checkKey(text);
}

async function checkProject(text: string): Promise<void> {
  const root = rootFolder();
  const folder = join(root, "project");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "Pulumi.yaml"), text);
  const project = await loadProject(folder, root);
  if (!project.ok) return hold(project.failure.reason === "projectInvalid", "a project that cannot be read is invalid");
  const { name, runtime, settingsFolder } = project.value;
  hold(name.length <= 200 && runtime.length <= 200, "names have a limited length");
  hold(isInside(root, settingsFolder), "settings are inside of the source");
}

function checkSettings(text: string): void {
  readStackKeys(text);
  const rendered = renderSettings(text, layer);
  if (!rendered.ok)
    return hold(rendered.failure.reason === "configInvalid", "settings that cannot be read are invalid");
  hold(
    readCiphertext(rendered.value, "p:token") === "AAAA" || /p:config:token/.test(text),
    "a secret is in the settings",
  );
  hold(renderSettings(rendered.value, layer).ok, "settings that were written can be read");
}

function checkKey(text: string): void {
  for (const isPath of [true, false]) {
    const parsed = parseConfigKey(text, "p", isPath);
    if (parsed.ok) hold(parsed.value.key.includes(":"), "a key has a namespace");
    else hold(parsed.failure.message.length < 1500, "a message is short");
  }
}

export const projectsTarget: Target = {
  name: "projects",
  form: "text",
  seeds: [
    "name: p\nruntime:\n  name: nodejs\n  options:\n    virtualenv: venv\nbackend:\n  url: file://x\nstackConfigDir: ../stacks\n",
    'secretsprovider: awskms://key\nencryptedkey: abc\nconfig:\n  p:a: b\n  p:config:token:\n    secure: "x"\n  p:list:\n    x: [{y: 1}]\nenvironment:\n  - env/two\n',
    "config: &c\n  p:a: &a {k: 1}\n  b: *a\nenvironment:\n  imports: [x]\n<<: *c\n",
    'p:a.b[0]["c.d"]',
  ],
  words: [
    "&a ",
    "*a",
    "<<: ",
    "!!binary ",
    "---\n",
    "|\n",
    ">-\n",
    "? ",
    "{",
    "[",
    "config:\n",
    "null",
    "~",
    "  ",
    "%YAML 1.1\n",
    "stackConfigDir: ",
  ],
  // The YAML library takes quadratic time for some inputs. Only the workspace of whoever wrote the file waits for it.
  maxPumpedBytes: 16 * 1024,
  rounds: 600,
  check,
};
