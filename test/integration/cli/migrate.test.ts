/** `check --migrate` on a cluster with the CRDs of the Go operator: an API server of its own. */
import { customResourceDefinitions, stackKind, type StackSpec } from "@pko/api";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { crds, type Crd } from "../../../packages/cli/src/kinds.ts";
import { stacks } from "../api/install.ts";
import { referenceCrds } from "../install/reference-crds.ts";
import { cliWith, parseDocument, testTimeoutMs } from "./harness.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;

beforeAll(async () => {
  server = await startApiServer();
  await installGoCrds();
}, testTimeoutMs);

afterAll(() => server.stop());

async function installGoCrds(): Promise<void> {
  const ours = new Map(customResourceDefinitions().map((each) => [each.metadata.name, each.spec]));
  for (const { name, versions } of referenceCrds()) {
    const spec = { ...ours.get(name), versions } as unknown as Crd["spec"];
    await server.client.create(crds, { apiVersion: crds.apiVersion, kind: crds.kind, metadata: { name }, spec });
  }
  // A new CRD has no conditions at first, which kubectl reports as an error.
  const wait = ["wait", "crd", "--all", "--for=condition=Established", "--timeout=30s"];
  await waitFor(() => server.kubectl(wait), { timeoutMs: 60_000, what: "the CRDs" });
  // An established CRD may not be served yet.
  const list = async () => await server.client.list(stacks);
  await waitFor(list, { timeoutMs: testTimeoutMs / 2, what: "Stacks to be served" });
}

async function createStack(name: string, spec: Partial<StackSpec>): Promise<void> {
  const { apiVersion, kind } = stackKind;
  const metadata = { name, namespace: "default" };
  await server.client.create(stacks, { apiVersion, kind, metadata, spec: { stack: "dev", ...spec } });
}

interface Checked {
  readonly code: number;
  readonly checks: readonly { readonly name: string; readonly result: string; readonly message: string }[];
  readonly differences: readonly { readonly severity: string; readonly name: string; readonly field: string }[];
}

async function check(...args: readonly string[]): Promise<Checked> {
  const { code, out } = await cliWith(server.kubeconfig)(["check", "-A", "-o", "json", ...args]);
  const { checks, differences } = parseDocument(out) as unknown as Omit<Checked, "code">;
  return { code, checks, differences };
}

const crdsIn = ({ checks }: Checked) => checks.find(({ name }) => name === "CRDs");

test("fails only for what blocks the migration, which is listed first", async () => {
  const secretsRef = { "app:password": { type: "Secret", secret: { name: "app", key: "password" } } };
  await createStack("app", { programRef: { name: "program" }, secretsRef });
  const before = await check("--migrate");
  expect(before.code).toBe(0);
  expect(crdsIn(before)?.result).toBe("ok");
  expect(crdsIn(before)?.message).toContain("the switch installs approvals.auto.pulumi.com");
  expect(before.checks.filter(({ result }) => result === "failed")).toEqual([]);
  expect(before.differences).toMatchObject([{ severity: "differs", name: "app", field: "spec.secretsRef" }]);

  await createStack("web", { projectRepo: "http://git.example.com/web.git", branch: "main" });
  const blocked = await check("--migrate");
  expect(blocked.code).toBe(1);
  expect(blocked.differences.map(({ severity, name }) => `${severity} ${name}`)).toEqual(["blocks web", "differs app"]);
});

test("without --migrate, the missing CRDs fail", async () => {
  const result = await check();
  expect(result.code).toBe(1);
  expect(crdsIn(result)).toMatchObject({ result: "failed" });
});
