/** The policy in docs/security.md that restricts service accounts. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import type { Stack, Workspace } from "@pko/api";
import { isInvalid, type Client } from "@pko/kube";
import { testNamespace, waitFor, type ApiServer, type TestNamespace } from "@pko/testkit";

import { apiServerWithApi, testTimeoutMs, stacks, workspaces } from "../api/install.ts";
import { pageManifests } from "./manifests.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;
/** Replaces `team-a` of the page. */
let place: TestNamespace;
let objects: string;

beforeAll(async () => {
  server = await apiServerWithApi();
  place = await testNamespace({ server });
  const page = pageManifests.find(
    ({ where, objects }) =>
      where.startsWith("docs/security.md") && objects.some(({ kind }) => kind === "ValidatingAdmissionPolicy"),
  );
  const items = page?.objects ?? [];
  objects = JSON.stringify({ apiVersion: "v1", kind: "List", items }).replaceAll("team-a", place.name);
  await server.kubectl(["apply", "--filename", "-"], { input: objects });
  await waitFor(async () => isRejected(stack({ serviceAccountName: "admin" })), { what: "the policy to be in force" });
}, testTimeoutMs);

afterAll(async () => {
  await server.kubectl(["delete", "--filename", "-"], { input: objects });
  await place.remove();
});

const message = "Stacks here run as the service account deployer";

const stack =
  (spec: object) =>
  (client: Client, namespace: string): Promise<unknown> => {
    const { apiVersion, kind } = stacks;
    const whole: Stack["spec"] = { stack: "dev", programRef: { name: "web" }, ...spec };
    const object: Stack = { apiVersion, kind, metadata: { name: "web", namespace }, spec: whole };
    return client.create(stacks, object, { dryRun: true });
  };

const workspace =
  (spec: object) =>
  (client: Client, namespace: string): Promise<unknown> => {
    const { apiVersion, kind } = workspaces;
    const object: Workspace = { apiVersion, kind, metadata: { name: "web", namespace }, spec };
    return client.create(workspaces, object, { dryRun: true });
  };

async function isRejected(
  create: (client: Client, namespace: string) => Promise<unknown>,
  namespace = place.name,
): Promise<boolean> {
  try {
    await create(server.client, namespace);
    return false;
  } catch (error) {
    if (isInvalid(error) && error.explanation.includes(message)) return true;
    throw error;
  }
}

const template = (spec: object) => ({ workspaceTemplate: { spec } });
const other = { serviceAccountName: "admin" };

describe("the policy rejects another service account", () => {
  const places = {
    "in a Stack": stack(other),
    "in the workspace template of a Stack": stack(template(other)),
    "in the pod template of a Stack": stack(template({ podTemplate: { spec: other } })),
    "in a Workspace": workspace(other),
    "in the pod template of a Workspace": workspace({ podTemplate: { spec: other } }),
  };
  for (const [where, create] of Object.entries(places)) {
    test(where, async () => expect(await isRejected(create)).toBe(true));
  }
});

test("the policy accepts the named service account, and a Stack without a service account", async () => {
  expect(await isRejected(stack({ serviceAccountName: "deployer" }))).toBe(false);
  expect(await isRejected(stack({}))).toBe(false);
});

test("the policy does not affect other namespaces", async () => {
  expect(await isRejected(stack(other), "default")).toBe(false);
});
