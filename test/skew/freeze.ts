/**
 * Copies the protocol of a commit, with both of its ends, into the tree: `bun test/skew/freeze.ts <commit> <folder>`.
 * The copy imports nothing of the current packages, so changes to them cannot reach it.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

const root = join(import.meta.dir, "../..");

/** What is copied: the protocol, the agent, and the operator's side of it. */
const folders = ["packages/rpc/src", "packages/git/src", "packages/agent/src", "packages/operator/src/agents"];
/** The parts of the Kubernetes runtime that the operator's side uses. */
const kubeParts = ["clock.ts", "resource.ts", "controller/backoff.ts", "telemetry/log.ts"];
/** The CA needs an API server and is not part of the protocol. */
const left = /\.test\.ts$|\/testing\/|\/agents\/operator-ca\.ts$/;

/** Where the imports of our own packages lead, seen from the frozen folder. */
const places: Readonly<Record<string, string>> = {
  "@pko/api": "api/src/index.ts",
  "@pko/git": "git/src/index.ts",
  "@pko/kube": "kube/src/index.ts",
  "@pko/rpc": "rpc/src/index.ts",
  "@pko/rpc/client": "rpc/src/client.ts",
  "@pko/rpc/pki": "rpc/src/tls/pki.ts",
  "@pko/rpc/server": "rpc/src/server.ts",
  "@pko/rpc/watch": "rpc/src/watch.ts",
};

function main(commit: string, name: string): void {
  const git = (...args: string[]): string => execFileSync("git", args, { cwd: root, encoding: "utf8" });
  const listed = git("ls-tree", "-r", "--name-only", commit, "--", ...folders)
    .trim()
    .split("\n");
  const kube = kubeParts.map((part) => `packages/kube/src/${part}`);
  const files = [...listed, ...kube].filter((path) => path.endsWith(".ts") && !left.test(path));
  const target = join(import.meta.dir, name);
  for (const folder of ["api", "git", "kube", "rpc", "agent", "operator"]) {
    rmSync(join(target, folder), { recursive: true, force: true });
  }
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(target, path)), { recursive: true });
    writeFileSync(join(target, path), text);
  };
  for (const path of files) {
    const place = path.replace(/^packages\//, "");
    write(place, redirected(place, git("show", `${commit}:${path}`)));
  }
  write("kube/src/index.ts", kubeParts.map((part) => `export * from "./${part}";\n`).join(""));
  write(
    "api/src/index.ts",
    `${agentPort(git("grep", "-h", "export const agentPort", commit, "--", "packages/api"))}\n`,
  );
  console.log(`${files.length} files of ${commit} are in ${posix.join("test/skew", name)}`);
}

/** With imports of our own packages as relative paths. */
function redirected(place: string, text: string): string {
  return text.replaceAll(/(?<=from )"(@pko\/[a-z/]+)"/g, (_, specifier: string) => {
    const to = places[specifier];
    if (to === undefined) throw new Error(`${place} imports ${specifier}, for which test/skew/freeze.ts has no place`);
    const path = posix.relative(posix.dirname(place), to);
    return JSON.stringify(path.startsWith(".") ? path : `./${path}`);
  });
}

function agentPort(line: string): string {
  const [declaration] = /export const agentPort = [\d_]+;/.exec(line) ?? [];
  if (declaration === undefined) throw new Error("packages/api declares no agentPort");
  return declaration;
}

const [commit, name] = process.argv.slice(2);
if (commit === undefined || name === undefined) throw new Error("usage: bun test/skew/freeze.ts <commit> <folder>");
main(commit, name);
