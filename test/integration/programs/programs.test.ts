/** The programs of examples/install-from-pulumi and examples/stack-from-pulumi, in each language, on an API server. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Stack } from "@pko/api";
import { operatorNamespace } from "@pko/install";
import { builtin } from "@pko/kube";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";

import { crdDeletionMs, untilServed } from "../api/crd-deletion.ts";
import { quickstart, stacks } from "../api/install.ts";
import { checkOut, installHosts, languages, PulumiUser, type Language } from "./toolchain.ts";

const slow = 300_000 + crdDeletionMs;
const canary = "canary-of-programs";

let server: ApiServer;
let folder: string;
let pulumi: PulumiUser;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "pko-programs-"));
  server = await startApiServer();
  const state = join(folder, "state");
  mkdirSync(state);
  pulumi = new PulumiUser({ hosts: await installHosts(folder), state, kubeconfig: server.kubeconfig });
}, slow);

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function project(example: string, language: Language): Promise<string> {
  const path = join(folder, `${example}-${language}`);
  await checkOut(example, language, path);
  return path;
}

async function installed(): Promise<string[]> {
  const output = await server.kubectl(["get", "--ignore-not-found", "--output=name", "--filename", quickstart]);
  return output.split("\n").filter((line) => line !== "");
}

/** Removes the operator's namespace, whose deletion otherwise needs a controller that this API server does not have. */
async function finalizeNamespace(): Promise<void> {
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: operatorNamespace }, spec: {} };
  const path = `/api/v1/namespaces/${operatorNamespace}/finalize`;
  await server.kubectl(["replace", "--raw", path, "--filename", "-"], { input: JSON.stringify(namespace) });
}

/** Installs the operator and returns the folder of the project. */
async function install(language: Language): Promise<string> {
  const path = await project("install-from-pulumi", language);
  await pulumi.deploy(path, { manifest: quickstart });
  return path;
}

const spec = {
  serviceAccountName: "pulumi",
  envRefs: { PULUMI_ACCESS_TOKEN: { type: "Secret", secret: { key: "accessToken" } } },
  stack: "my-org/k8s-nginx/dev",
  projectRepo: "https://github.com/pulumi/examples",
  repoDir: "kubernetes-ts-nginx/",
  branch: "master",
  destroyOnFinalize: true,
};

describe("a program installs the operator, and another one declares a Stack, in", () => {
  let declared: readonly string[] | undefined;

  for (const language of languages) {
    test(
      language,
      async () => {
        expect(await installed()).toEqual([]);
        const operator = await install(language);
        const objects = await installed();
        declared ??= objects;
        expect(objects).toContain("deployment.apps/controller-manager");
        expect(objects).toEqual([...declared]);

        const stack = await project("stack-from-pulumi", language);
        await pulumi.deploy(stack, { stack: spec.stack, pulumiAccessToken: canary });
        const ref = { namespace: "default", name: "nginx" };
        const created = await server.client.get(stacks, ref);
        expect(created.spec).toMatchObject(spec);
        expect(await tokenOf(created)).toBe(canary);

        await pulumi.destroy(stack);
        expect(await server.client.find(stacks, ref)).toBeUndefined();
        await untilServed(server);
        await pulumi.destroy(operator);
        await finalizeNamespace();
        await waitFor(async () => (await installed()).length === 0, {
          timeoutMs: crdDeletionMs,
          what: "everything to be deleted",
        });
      },
      slow,
    );
  }
});

/** The access token in the Secret that the Stack refers to. */
async function tokenOf({ spec: { envRefs } }: Stack): Promise<string> {
  const name = envRefs?.["PULUMI_ACCESS_TOKEN"]?.secret?.name ?? "";
  const { data } = await server.client.get(builtin.secrets, { namespace: "default", name });
  return Buffer.from(data?.["accessToken"] ?? "", "base64").toString();
}
