/** Every command in the docs exists, with its options, kinds and files. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { toolPath } from "@pko/cluster";
import type { ApiServer } from "@pko/testkit";
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { commands as pluginCommands } from "../../../packages/cli/src/commands/index.ts";
import { processIo } from "../../../packages/cli/src/io.ts";
import { parseArguments } from "../../../packages/cli/src/parse.ts";
import { parseCommands, valuesOf, type Command } from "../../docs/commands.ts";
import { pages, root } from "../../docs/pages.ts";
import { apiServerWithApi, testTimeoutMs } from "../api/install.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;
let kinds: ReadonlySet<string>;

beforeAll(async () => {
  server = await apiServerWithApi();
  kinds = await servedKinds();
}, testTimeoutMs);

const commands = new Map<string, { readonly where: string; readonly command: Command }>();
for (const { path, blocks } of pages) {
  for (const { text } of blocks.filter(({ language }) => language === "sh")) {
    for (const command of parseCommands(text)) commands.set(command.line, { where: path, command });
  }
}

describe("the docs contain a valid command", () => {
  for (const { where, command } of commands.values()) {
    test.concurrent(`${command.line} (${where})`, async () => {
      const check = checks[command.words[0] ?? ""];
      if (!check)
        throw new Error(`no check for ${command.words[0]}: add one to commands.test.ts, or remove the command`);
      await check(command);
    });
  }
});

/** The check for each program. The docs use no other program. */
const checks: Readonly<Record<string, (command: Command) => void | Promise<void>>> = {
  make: checkMake,
  kubectl: checkKubectl,
  xargs: (command) => checkKubectl({ ...command, words: command.words.slice(command.words.indexOf("kubectl")) }),
  helm: (command) => checkCobra("helm", command),
  pulumi: (command) => checkCobra("pulumi", command),
  docker: checkDocker,
  grep: ({ words }) => expect(Bun.spawnSync(["grep", ...words.slice(1)], { stdin: new Uint8Array() }).exitCode).toBe(1),
  sudo: ({ words }) => expect(words[1]).toBe("install"),
  base64: checkHelp,
  curl: checkHelp,
  tar: checkHelp,
  gunzip: checkHelp,
  tee: ({ words }) => expect(words[1]).toMatch(/^[a-z-]+\.json$/),
  git: ({ words }) => expect(["clone", "push"]).toContain(words[1] ?? ""),
  export: ({ words }) => expect(words[1]).toMatch(/^[A-Z_]+=/),
};

/** The program accepts these options. */
function checkHelp({ words }: Command): void {
  expect(Bun.spawnSync([...words, "--help"]).exitCode).toBe(0);
}

function checkMake({ words }: Command): void {
  const makefile = readFileSync(join(root, "Makefile"), "utf8");
  const targets = words.slice(1).filter((word) => !word.startsWith("-") && !word.includes("="));
  expect(targets).not.toEqual([]);
  for (const target of targets) expect(makefile).toMatch(new RegExp(`^${target}:`, "m"));
  for (const [example] of words.flatMap((word) => [...word.matchAll(/^EXAMPLE=(.*)/g)].map(([, name]) => [name]))) {
    checkFile(`examples/${example}`);
  }
}

/** Verbs with a kind as their first argument. */
const kindVerbs = new Set(["get", "describe", "delete", "wait", "annotate", "label", "patch", "edit", "explain"]);

async function checkKubectl(command: Command): Promise<void> {
  const [, verb = "", kind = ""] = command.words;
  if (verb === "pulumi") return await checkPlugin(command);
  if (verb === "krew") return checkKrew(command);
  const help = (await helpOnce(similarTo(command))) ?? (await helpWith([command]));
  expect(help).toContain(`kubectl ${verb}`);
  for (const file of valuesOf(command, "-f", "--filename", "--patch-file", "-k"))
    if (!isElsewhere(file) && !shownFiles.has(file)) checkFile(file);
  if (!kindVerbs.has(verb) || kind.startsWith("-")) return;
  const names = kind.split(",").map((name) => name.split(/[/.]/, 1)[0] ?? "");
  for (const name of names) expect(kinds).toContain(name);
  for (const path of valuesOf(command, "-o", "--output").flatMap(jsonPathFields)) {
    await explainOnce(`${names[0]}${path}`);
  }
}

/** Files that a reader writes: the first line of the YAML block is a comment with the name. */
const shownFiles = new Set(
  pages.flatMap(({ blocks }) =>
    blocks
      .filter(({ language }) => language === "yaml")
      .flatMap(({ text }) => /^# (\S+\.yaml)\n/.exec(text)?.[1] ?? []),
  ),
);

/** Standard input, or a URL, which test/docs/published.test.ts checks. */
const isElsewhere = (file: string): boolean => file === "-" || file.startsWith("https://");

/** kubectl parses all options before it prints the help, and rejects unknown ones. It does not read other arguments. */
async function helpWith(similar: readonly Command[]): Promise<string> {
  const words = similar.flatMap(({ words }) => words.slice(2).filter((word) => word !== "--"));
  return await server.kubectl([similar[0]?.words[1] ?? "", ...words, "--help"]);
}

/** One process can parse the options of all commands with the same verb, and the same first arguments if these are subcommands. */
function similarTo(command: Command): Command[] {
  const key = similarityOf(command);
  return Array.from(commands.values(), ({ command }) => command).filter((other) => similarityOf(other) === key);
}

const verbsWithSubcommands = new Set(["auth", "certificate", "config", "create", "rollout", "set", "top"]);

const similarityOf = ({ words: [program = "", verb = "", ...rest] }: Command): string =>
  [program, verb, ...(verbsWithSubcommands.has(verb) ? rest.slice(0, 2) : [])].join(" ");

const helps = new Map<string, Promise<string | undefined>>();

/** Undefined if one of them is rejected: each is then checked alone. */
function helpOnce(similar: readonly Command[]): Promise<string | undefined> {
  const key = similar[0] ? similarityOf(similar[0]) : "";
  const help = helps.get(key) ?? helpWith(similar).catch(() => undefined);
  helps.set(key, help);
  return help;
}

const explained = new Map<string, Promise<unknown>>();

/** Many commands read the same field. */
async function explainOnce(field: string): Promise<void> {
  const explanation = explained.get(field) ?? server.kubectl(["explain", field]);
  explained.set(field, explanation);
  await explanation;
}

/** The plugin's own parser accepts it. */
async function checkPlugin({ words }: Command): Promise<void> {
  const errors: string[] = [];
  const io = { ...processIo(new AbortController().signal), err: (text: string) => void errors.push(text) };
  const { kind } = await parseArguments(words.slice(2), pluginCommands, io);
  expect({ kind, errors }).toEqual({ kind: "command", errors: [] });
}

/** krew is not installed here. test/docs/published.test.ts checks the URL. */
function checkKrew({ words }: Command): void {
  expect(words.slice(2).join(" ")).toMatch(/^install --manifest-url=https:\S+$/);
}

/** The fields of a JSONPath, up to the last one that is in the schema; of a list, those by which it is filtered. */
function jsonPathFields(output: string): string[] {
  return [...output.matchAll(/\{(?:\.items\[\?\(@)?((?:\.[A-Za-z]+)+)/g)].map(([, path = ""]) =>
    path.replace(/^(\.status\.outputs|\.data)\..*/, "$1"),
  );
}

/** Plural, singular and short names. */
async function servedKinds(): Promise<ReadonlySet<string>> {
  const listed = await server.kubectl(["api-resources", "--no-headers"]);
  const names = new Set<string>();
  for (const line of listed.split("\n")) {
    const words = line.trim().split(/\s+/);
    const [plural = "", short = ""] = words;
    const isShort = words.length === 5;
    for (const name of [plural, (words.at(-1) ?? "").toLowerCase(), ...(isShort ? short.split(",") : [])])
      names.add(name);
  }
  return names;
}

/** Helm and Pulumi parse all options before they print the help, and reject unknown ones. */
async function checkCobra(tool: "helm" | "pulumi", { words }: Command): Promise<void> {
  const [, verb = ""] = words;
  const child = Bun.spawn([toolPath(tool), ...words.slice(1), "--help"], { stdout: "pipe", stderr: "pipe" });
  const [help, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect(errors).toBe("");
  expect(help).toContain(`${tool} ${verb}`);
  for (const chart of words.filter((word) => /^(\.\/)?charts\//.test(word))) checkFile(chart);
}

function checkDocker(command: Command): void {
  const [, verb = ""] = command.words;
  expect(["build", "push"]).toContain(verb);
  if (verb !== "build") return;
  const context = command.words.at(-1) ?? "";
  // `make release-files` creates that folder.
  const given = context === ".build/image" ? [] : [context];
  for (const file of [...valuesOf(command, "-f"), ...given]) checkFile(file);
}

function checkFile(path: string): void {
  expect(`${path}: ${existsSync(join(root, path)) ? "exists" : "is missing"}`).toBe(`${path}: exists`);
}
