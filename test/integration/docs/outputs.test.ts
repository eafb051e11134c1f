/** Pages show what kubectl prints for their commands. This test reports what the operator and Flux would report. */
import { expect, setDefaultTimeout, test } from "bun:test";

import { parseCommands } from "../../docs/commands.ts";
import { pages } from "../../docs/pages.ts";
import { apiServerWithApi, testTimeoutMs } from "../api/install.ts";
import { Shell } from "./shell.ts";

setDefaultTimeout(testTimeoutMs);

/** What they print depends neither on the time nor on what is deployed. */
const constant = new Set(["annotate", "apply", "delete", "patch", "wait"]);

const isConstant = (text: string): boolean =>
  parseCommands(text).every(({ words: [program, verb = ""] }) => {
    return program === "export" || (program === "kubectl" && constant.has(verb));
  });

/** Older versions of kubectl do not name the namespace of what they delete. */
const comparable = (output: string): string => output.trimEnd().replaceAll(/ from default namespace$/gm, "");

/** Each `sh` block of the page whose output is constant, and the `text` block after it. */
function blocksOf(path: string) {
  const { blocks } = pages.find((page) => page.path === path) ?? { blocks: [] };
  return blocks.flatMap(({ language, text }, index) => {
    const next = blocks[index + 1];
    const shown = next?.language === "text" ? comparable(next.text) : undefined;
    return language === "sh" && isConstant(text) ? [{ text, shown }] : [];
  });
}

const ready = {
  type: "Ready",
  status: "True",
  reason: "Done",
  message: "",
  lastTransitionTime: "2030-01-01T00:00:00Z",
};
const lastUpdate = { lastSuccessfulCommit: "ff3c0ceabf287e35c4ed56f8eaa6cb8363c7e4a5" };
const status = JSON.stringify({ status: { conditions: [ready], lastUpdate } });
const website = {
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "website" },
  spec: { stack: "dev", projectRepo: "https://git.example.com/website", branch: "main" },
};

test.each([
  ["docs/git.md", ["stack random --subresource=status", "stack website --subresource=status"]],
  // The fixture of its CRD has no subresource.
  ["docs/flux.md", ["gitrepository pulumi-examples", "stack random-flux --subresource=status"]],
])("%s shows the output of its commands", async (path, reported) => {
  using shell = new Shell(await apiServerWithApi());
  await shell.run("kubectl apply -f -", JSON.stringify(website));
  const blocks = blocksOf(path);
  expect(blocks.length).toBeGreaterThan(2);
  const shown: unknown[] = [];
  const printed: unknown[] = [];
  for (const block of blocks) {
    shown.push([block.text, block.shown]);
    printed.push([block.text, comparable(await shell.run(`set -e\n${block.text}`))]);
    if (!block.text.includes("kubectl apply")) continue;
    // Nothing else removes it on an API server without controllers.
    await shell.run(`kubectl patch --type=merge -p '{"metadata":{"finalizers":null}}' $(kubectl get pvc -o name)`);
    for (const object of reported) await shell.run(`kubectl patch ${object} --type=merge -p '${status}'`);
  }
  await shell.run("kubectl delete stack website");
  expect(shown).toEqual(printed);
});
