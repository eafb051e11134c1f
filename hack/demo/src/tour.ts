/** What `make demo` shows after the first change: commands that a user can type, with their output. */
import { attempt, clusterKubeconfig, CommandFailed, kubectlCommand, repositoryRoot } from "@pko/cluster";

/** Words of a command; the first is the program. */
type Words = readonly string[];

export interface Chapter {
  readonly title: string;
  readonly commands: readonly Words[];
}

const patchStack = (patch: object): Words => [
  "kubectl",
  "patch",
  "stack",
  "shop",
  "--type=merge",
  `--patch=${JSON.stringify(patch)}`,
];
const waitFor = (stack: string, what: string): Words => [
  "kubectl",
  "wait",
  "stack",
  stack,
  `--for=${what}`,
  "--timeout=2m",
];
const pulumi = (...words: Words): Words => ["kubectl", "pulumi", ...words];
const password = (secret: string): object => ({
  spec: { secretsRef: { adminPassword: { secret: { name: secret } } } },
});

/** For the example `program`, after it was deployed; the Stacks of the example `drift` are being deployed. */
export const chapters: readonly Chapter[] = [
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
  {
    title: "Rolling back to the first configuration (with Git: pin spec.commit)",
    commands: [
      patchStack({ spec: { approval: null, config: { name: "shop", currency: null } } }),
      waitFor("shop", "condition=Ready"),
      pulumi("outputs", "shop"),
    ],
  },
  {
    title: "Detecting drift: a stack that another one reads has changed",
    commands: [
      waitFor("firewall", "condition=Ready"),
      [
        "kubectl",
        "patch",
        "program",
        "addresses",
        "--type=merge",
        `--patch=${JSON.stringify({ program: { outputs: { range: "10.1.0.0/16" } } })}`,
      ],
      waitFor("addresses", "jsonpath={.status.outputs.range}=10.1.0.0/16"),
      pulumi("drift", "firewall", "--wait"),
    ],
  },
  {
    title: "Deleting Stacks together: those that depend on others are destroyed first",
    commands: [
      ["kubectl", "delete", "stack", "addresses", "firewall"],
      ["kubectl", "delete", "-f", "examples/drift", "--ignore-not-found"],
      pulumi("get"),
    ],
  },
];

export async function tour(heading: (text: string) => void): Promise<void> {
  for (const { title, commands } of chapters) {
    heading(title);
    for (const words of commands) {
      console.log(`$ ${words.map(quoted).join(" ")}`);
      console.log(indented(await output(words)));
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

/** The demo's kubectl and cluster; `kubectl pulumi` from source, so that nothing has to be built or installed. */
function resolved([, first = "", ...rest]: Words): string[] {
  if (first !== "pulumi") return kubectlCommand(first, ...rest);
  return [process.execPath, "packages/cli/src/main.ts", ...rest, `--kubeconfig=${clusterKubeconfig()}`];
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
