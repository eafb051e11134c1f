/** What `make demo` shows after the first change: commands that a user can type, with their output. */
import { join } from "node:path";

import { attempt, clusterKubeconfig, CommandFailed, kubectlCommand, repositoryRoot, run, together } from "@pko/cluster";

import { gitServerObjects, type Repository } from "./git-server.ts";
import { heading } from "./progress-lines.ts";

/** Words of a command; the first is the program. */
type Words = readonly string[];

interface Chapter {
  readonly title: string;
  readonly commands: readonly Words[];
}

const kubectl = (...words: Words): Words => ["kubectl", ...words];
const pulumi = (...words: Words): Words => kubectl("pulumi", ...words);
const patch = (kind: "program" | "stack", name: string, change: object): Words =>
  kubectl("patch", kind, name, "--type=merge", `--patch=${JSON.stringify(change)}`);
const patchStack = (change: object): Words => patch("stack", "shop", change);
const waitFor = (stack: string, what: string): Words =>
  kubectl("wait", "stack", stack, `--for=${what}`, "--timeout=2m");
const password = (secret: string): object => ({
  spec: { secretsRef: { adminPassword: { secret: { name: secret } } } },
});

const plugin = join(repositoryRoot, ".build/demo/kubectl-pulumi.js");

/** Bundles `kubectl pulumi`: from its sources, each start would transpile hundreds of files. */
export async function preparePlugin(): Promise<void> {
  const options = ["--target=bun", `--outfile=${plugin}`];
  await run([process.execPath, "build", "packages/cli/src/main.ts", ...options], { cwd: repositoryRoot });
}

/** For the Stack of the example `program`, after it was deployed. */
const firstChapters: readonly Chapter[] = [
  {
    title: "Breaking it, finding the cause, and repairing it",
    commands: [
      patchStack(password("shop-admn")),
      waitFor("shop", "condition=Stalled"),
      pulumi("why", "shop"),
      patchStack(password("shop-admin")),
      waitFor("shop", "condition=Ready"),
    ],
  },
  {
    title: "Requiring an approval: the plan is shown, and exactly that is applied",
    commands: [
      patchStack({ spec: { approval: { required: "Always" }, config: { currency: "GBP" } } }),
      waitFor("shop", "jsonpath={.status.approval.digest}"),
      pulumi("approve", "shop", "--yes", "--reason=as discussed"),
      waitFor("shop", "condition=Ready"),
    ],
  },
];

/** For the Stacks of the example `drift`, which are being deployed. */
const driftChapters: readonly Chapter[] = [
  {
    title: "Detecting drift: a stack that another one reads has changed",
    commands: [
      waitFor("firewall", "condition=Ready"),
      patch("program", "addresses", { program: { outputs: { range: "10.1.0.0/16" } } }),
      waitFor("addresses", "jsonpath={.status.outputs.range}=10.1.0.0/16"),
      pulumi("drift", "firewall", "--wait"),
    ],
  },
  {
    title: "Deleting Stacks together: those that depend on others are destroyed first",
    commands: [
      kubectl("delete", "stack", "addresses", "firewall"),
      kubectl("delete", "-f", "examples/drift", "--ignore-not-found"),
    ],
  },
];

const mistake = 'cd shop && sed -i s/apples/lemons/ Pulumi.yaml && git commit -am "Sell lemons"';

/** They end as they began, so that the Stack can be deleted when the Git server no longer exists. */
const gitChapters = ({ url, firstCommit }: Repository): readonly Chapter[] => [
  {
    title: "Deploying the same program from a Git repository: nothing else changes",
    commands: [
      patchStack({
        spec: { approval: null, programRef: null, projectRepo: url, branch: "main", gitAuthSecret: "git-server" },
      }),
      waitFor("shop", "condition=Ready"),
    ],
  },
  {
    title: "Pushing a commit that turns out to be a mistake",
    commands: [kubectl("exec", "git-server", "--", "sh", "-c", mistake), pulumi("reconcile", "shop", "--wait")],
  },
  {
    title: "Rolling back: spec.commit pins the commit before it",
    commands: [
      patchStack({ spec: { branch: null, commit: firstCommit } }),
      waitFor("shop", "condition=Ready"),
      pulumi("outputs", "shop"),
    ],
  },
  {
    title: "Deploying the Program object again, which needs no Git server",
    commands: [
      patchStack({ spec: { programRef: { name: "shop" }, projectRepo: null, commit: null, gitAuthSecret: null } }),
      waitFor("shop", "condition=Ready"),
      kubectl("delete", ...gitServerObjects, "--wait=false"),
    ],
  },
];

const lastChapter: Chapter = { title: "What is deployed now", commands: [pulumi("get")] };

type Print = (text: string) => void;

/** The chapters about other Stacks run at the same time as the first ones, and are printed after them. */
export async function tour(print: Print, repository: Promise<Repository>): Promise<void> {
  const drift: string[] = [];
  await together(new AbortController(), [
    play(firstChapters, print).then(async () => await play(gitChapters(await repository), print)),
    play(driftChapters, (text) => drift.push(text)),
    repository,
  ]);
  for (const text of drift) print(text);
  await play([lastChapter], print);
}

async function play(chapters: readonly Chapter[], print: Print): Promise<void> {
  for (const { title, commands } of chapters) {
    print(heading(title));
    for (const words of commands) {
      print(`$ ${words.map(quoted).join(" ")}`);
      print(indented(await output(words)));
    }
  }
}

async function output(words: Words): Promise<string> {
  const command = resolved(words);
  const result = await attempt(command, { cwd: repositoryRoot });
  // `kubectl pulumi` exits with 1 if the Stack is not as it should be.
  const isExpected = result.code === 0 || (result.code === 1 && words[1] === "pulumi");
  if (!isExpected) throw new CommandFailed(command, result);
  return result.stderr + result.stdout;
}

/** The demo's kubectl, plugin and cluster. */
function resolved([, first = "", ...rest]: Words): string[] {
  if (first !== "pulumi") return kubectlCommand(first, ...rest);
  return [process.execPath, plugin, ...rest, `--kubeconfig=${clusterKubeconfig()}`];
}

/** As it has to be typed in a shell. */
function quoted(word: string): string {
  if (/^[\w./:=-]+$/.test(word)) return word;
  const [, option = "", value = word] = /^(--[\w-]+=)(.*)$/s.exec(word) ?? [];
  return `${option}'${value}'`;
}

function indented(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, "  ");
}
