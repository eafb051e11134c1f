/** A Git server in a pod of the demo's cluster: the chapters about Git run on any cluster, without the internet. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import type { Program } from "@pko/api";
import { repositoryRoot } from "@pko/cluster";
import { parse, stringify } from "yaml";

import { kubectl } from "./kubectl.ts";
import { demoLabels } from "./own-objects.ts";

/** The name of the pod, of its ConfigMap, and of the Secret with the certificate that Stacks trust. */
const name = "git-server";
const metadata = { name, labels: demoLabels };

export interface Repository {
  readonly url: string;
  readonly firstCommit: string;
}

/** Returns before the server is ready. One of an interrupted demo is replaced. */
export async function startGitServer(): Promise<void> {
  const data = { "server.mjs": await serverScript(), "Pulumi.yaml": await project() };
  const config = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
  const pod = join(repositoryRoot, "hack/demo/git-server/pod.yaml");
  await kubectl(["replace", "--force", "-f", "-", "-f", pod], stringify(config));
}

/** Waits until the server responds. Stacks read its repository with the Secret `git-server`. */
export async function gitRepository(): Promise<Repository> {
  await kubectl(["wait", "pod", name, "--for=condition=Ready", "--timeout=2m"]);
  const facts = 'git -C shop rev-parse HEAD && echo "$POD_IP" "$PORT" && cat "$CERTIFICATE"';
  const [firstCommit = "", address = "", ...certificate] = (
    await kubectl(["exec", name, "--", "sh", "-c", facts])
  ).split("\n");
  await kubectl(
    ["apply", "-f", "-"],
    stringify({
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      stringData: { "ca.crt": certificate.join("\n") },
    }),
  );
  const [ip = "", port = ""] = address.split(" ");
  return { url: `https://${ip.includes(":") ? `[${ip}]` : ip}:${port}/shop.git`, firstCommit };
}

export const gitServerObjects = ["pod", "configmap", "secret"].map((kind) => `${kind}/${name}`);

/** For the Node.js of the workspace image, which may not know TypeScript. */
async function serverScript(): Promise<string> {
  return new Bun.Transpiler({ loader: "ts" }).transformSync(await read("hack/demo/git-server/server.ts"));
}

/** The program of the example, as a project in a repository. */
async function project(): Promise<string> {
  const { metadata, program } = parse(await read("examples/program/program.yaml")) as Program;
  return stringify({ name: metadata.name, runtime: "yaml", ...program });
}

async function read(path: string): Promise<string> {
  return await readFile(join(repositoryRoot, path), "utf8");
}
