/** The admission policies of the quickstart manifest, with the users and roles that docs/security.md describes. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { approvalKind, pulumiGroup, stackFinalizer, stackKind, type Approval, type Stack } from "@pko/api";
import { resource, type Client } from "@pko/kube";
import { testNamespace, type ApiServer, type TestNamespace } from "@pko/testkit";

import { OperatorRights } from "../../rights/operator-rights.ts";
import { apiServerWithApi, pathTo, stacks, testTimeoutMs } from "../api/install.ts";
import { createUser, deleteCollection, denial, untilDenied, type TestUser } from "./users.ts";

setDefaultTimeout(testTimeoutMs);

const approvals = resource<Approval>(approvalKind);
const oldStacks = resource<Stack>({ ...stackKind, apiVersion: `${pulumiGroup}/v1alpha1` });

let server: ApiServer;
let place: TestNamespace;
/** May change Stacks. */
let editor: TestUser;
/** May only approve. */
let approver: TestUser;
/** May do both. */
let lead: TestUser;
let namespaceController: TestUser;
let garbageCollector: TestUser;
let operator: OperatorRights;

beforeAll(async () => {
  server = await apiServerWithApi();
  place = await testNamespace({ server });
  const systemUser = (controller: string) => ({ name: `system:serviceaccount:kube-system:${controller}`, roles: [] });
  [editor, approver, lead, namespaceController, garbageCollector] = await Promise.all([
    createUser(place, { name: "eve", roles: ["view", "edit"] }),
    createUser(place, { name: "anna", roles: ["approver"] }),
    createUser(place, { name: "lea", roles: ["view", "edit", "approver"] }),
    createUser(place, systemUser("namespace-controller")),
    createUser(place, systemUser("generic-garbage-collector")),
  ]);
  operator = await OperatorRights.in(place);
  await createStack("probe", { approval: { required: "Always" }, protect: true });
  await untilDenied("the policy for Approvals to be in force", () => approve(lead.client, "somebody-else"));
  await untilDenied("the policy for deletions to be in force", () => remove(lead.client, "probe"));
  await untilDenied("the policy for changes to be in force", () =>
    change(editor.client, "probe", { spec: { protect: false } }),
  );
}, testTimeoutMs);

afterAll(async () => {
  await operator[Symbol.asyncDispose]();
  await place.remove();
});

let created = 0;
const newName = (): string => `stack-${(created += 1)}`;

async function createStack(name: string, spec: Partial<Stack["spec"]>, finalizers?: string[]): Promise<Stack> {
  return await server.client.create(stacks, {
    apiVersion: stacks.apiVersion,
    kind: stacks.kind,
    metadata: { name, namespace: place.name, ...(finalizers && { finalizers }) },
    spec: { stack: "dev", programRef: { name: "program" }, ...spec },
  });
}

const refTo = (name: string) => ({ namespace: place.name, name });

interface SpecChange {
  /** A merge patch of the spec. */
  readonly spec: object;
  readonly kind?: typeof stacks;
}

const change = (client: Client, name: string, { spec, kind = stacks }: SpecChange): Promise<unknown> =>
  client.patch(kind, refTo(name), { patch: { type: "merge", body: { spec } } });

const remove = (client: Client, name: string, kind = stacks): Promise<void> => client.delete(kind, refTo(name));

/** Returns the name of the Approval. */
async function approve(client: Client, decidedBy: string): Promise<string> {
  const name = `approval-${crypto.randomUUID()}`;
  const spec = { updateName: "web-1", updateUid: "uid", digest: "sha256:0", decision: "Approve", decidedBy } as const;
  const { apiVersion, kind } = approvals;
  await client.create(approvals, { apiVersion, kind, metadata: { name, namespace: place.name }, spec });
  return name;
}

describe("an Approval", () => {
  test("is created by a user who may approve, under their own name", async () => {
    expect(await denial(approve(approver.client, "anna"))).toBeUndefined();
    expect(await denial(approve(lead.client, "lea"))).toBeUndefined();
  });

  test("is denied under another name, also to a cluster admin", async () => {
    const message = "spec.decidedBy: must be the name of the user who creates the Approval; set it to";
    expect(await denial(approve(approver.client, "lea"))).toContain(`${message} anna`);
    expect(await denial(approve(server.client, "lea"))).toContain(`${message} admin`);
    expect(await denial(approve(approver.client, "system:serviceaccount:default:anna"))).toContain(message);
  });

  test("is denied to a user who may only edit Stacks", async () => {
    expect(await denial(approve(editor.client, "eve"))).toContain('User "eve" cannot create resource "approvals"');
  });

  test("can be read, but not changed, used or deleted, by those who edit or approve", async () => {
    const name = await approve(approver.client, "anna");
    const patch = { type: "merge", body: { status: { usedBy: null }, spec: { reason: "changed" } } } as const;
    for (const { client } of [editor, approver, lead]) {
      expect((await client.get(approvals, refTo(name))).spec.decidedBy).toBe("anna");
      expect(await denial(client.patch(approvals, refTo(name), { patch }))).toContain("cannot patch");
      expect(await denial(client.patch(approvals, refTo(name), { patch, subresource: "status" }))).toContain(
        "cannot patch",
      );
      expect(await denial(client.delete(approvals, refTo(name)))).toContain("cannot delete");
    }
  });

  test("of the operator is denied with the name of the field in a dry run, by which it recognizes the policy", async () => {
    const { apiVersion, kind } = approvals;
    const spec = { updateName: "a", updateUid: "a", digest: "a", decision: "Reject", decidedBy: "nobody" } as const;
    const probe = { apiVersion, kind, metadata: { name: "probe", namespace: place.name }, spec };
    expect(await denial(operator.client.create(approvals, probe, { dryRun: true }))).toContain("decidedBy");
  });
});

const approval = (required: "Never" | "OnDestructiveChanges" | "Always", expiresAfterSeconds?: number) => ({
  approval: { required, ...(expiresAfterSeconds !== undefined && { expiresAfterSeconds }) },
});

interface Change {
  readonly from: Partial<Stack["spec"]>;
  /** A merge patch of the spec. */
  readonly to: object;
  readonly field?: "spec.approval.required" | "spec.approval.expiresAfterSeconds" | "spec.protect";
}

const weakening: Readonly<Record<string, Change>> = {
  "lower Always to Never": { from: approval("Always"), to: approval("Never"), field: "spec.approval.required" },
  "lower Always to OnDestructiveChanges": {
    from: approval("Always"),
    to: approval("OnDestructiveChanges"),
    field: "spec.approval.required",
  },
  "lower OnDestructiveChanges to Never": {
    from: approval("OnDestructiveChanges"),
    to: approval("Never"),
    field: "spec.approval.required",
  },
  "remove approval": { from: approval("Always"), to: { approval: null }, field: "spec.approval.required" },
  "remove approval.required": {
    from: approval("Always", 3600),
    to: { approval: { required: null } },
    field: "spec.approval.required",
  },
  "raise the expiry": {
    from: approval("Always", 3600),
    to: approval("Always", 3601),
    field: "spec.approval.expiresAfterSeconds",
  },
  "remove an expiry that is shorter than the default": {
    from: approval("Always", 3600),
    to: { approval: { expiresAfterSeconds: null } },
    field: "spec.approval.expiresAfterSeconds",
  },
  "raise the default expiry": {
    from: approval("OnDestructiveChanges"),
    to: approval("Always", 86_401),
    field: "spec.approval.expiresAfterSeconds",
  },
  "set protect to false": { from: { protect: true }, to: { protect: false }, field: "spec.protect" },
  "remove protect": { from: { protect: true }, to: { protect: null }, field: "spec.protect" },
};

const harmless: Readonly<Record<string, Change>> = {
  "require approval": { from: {}, to: approval("Always") },
  "require more approval": { from: approval("OnDestructiveChanges"), to: approval("Always") },
  "lower the expiry": { from: approval("Always"), to: approval("Always", 60) },
  "set the default expiry explicitly": { from: approval("Always"), to: approval("Always", 86_400) },
  "raise an expiry that has no effect": { from: approval("Never", 60), to: approval("Never", 86_400) },
  "set protect": { from: { protect: false }, to: { protect: true } },
  "change another field": {
    from: { ...approval("Always", 3600), protect: true },
    to: { config: { color: "blue" }, destroyOnFinalize: true },
  },
};

describe.each([
  ["v1", stacks],
  ["v1alpha1", oldStacks],
] as const)("with the version %s", (_, kind) => {
  for (const [what, { from, to, field = "" }] of Object.entries(weakening)) {
    test(`only users who may approve can ${what}`, async () => {
      const name = newName();
      await createStack(name, from);
      const message = await denial(change(editor.client, name, { spec: to, kind }));
      expect(message).toContain(`${field}: only a user who may create Approvals in this namespace`);
      expect((await server.client.get(stacks, refTo(name))).spec).toMatchObject(from);
      expect(await denial(change(lead.client, name, { spec: to, kind }))).toBeUndefined();
    });
  }

  for (const [what, { from, to }] of Object.entries(harmless)) {
    test(`a user who edits Stacks can ${what}`, async () => {
      const name = newName();
      await createStack(name, from);
      expect(await denial(change(editor.client, name, { spec: to, kind }))).toBeUndefined();
    });
  }

  test("a user who edits Stacks cannot remove the spec", async () => {
    const name = newName();
    await createStack(name, { ...approval("Always"), protect: true });
    const patch = { type: "json", body: [{ op: "remove", path: "/spec" }] } as const;
    expect(await denial(editor.client.patch(kind, refTo(name), { patch }))).toBeDefined();
    const minimal = { type: "json", body: [{ op: "replace", path: "/spec", value: { stack: "dev" } }] } as const;
    expect(await denial(editor.client.patch(kind, refTo(name), { patch: minimal }))).toBeDefined();
    expect((await server.client.get(stacks, refTo(name))).spec).toMatchObject({ protect: true });
  });

  test("a protected Stack is deleted by nobody", async () => {
    const name = newName();
    await createStack(name, { protect: true });
    for (const { client } of [editor, lead, server]) {
      expect(await denial(remove(client, name, kind))).toContain(
        "spec.protect: the Stack is protected from deletion; set spec.protect to false first",
      );
    }
    expect((await server.client.get(stacks, refTo(name))).metadata.deletionTimestamp).toBeUndefined();
  });
});

test("a Stack that is not protected is deleted by a user who edits Stacks", async () => {
  for (const spec of [{}, { protect: false }, approval("Always")]) {
    const name = newName();
    await createStack(name, spec);
    expect(await denial(remove(editor.client, name))).toBeUndefined();
  }
});

test("a protected Stack is deleted after a user who may approve has set protect to false", async () => {
  const name = newName();
  await createStack(name, { protect: true });
  await change(lead.client, name, { spec: { protect: false } });
  expect(await denial(remove(editor.client, name))).toBeUndefined();
});

test("one request that deletes all Stacks of a namespace keeps the protected ones", async () => {
  const name = newName();
  await createStack(name, { protect: true });
  const { status, text } = await deleteCollection(editor, stacks, place.name);
  expect(status).toBe(403);
  expect(text).toContain("the Stack is protected from deletion");
  expect(await server.client.find(stacks, refTo(name))).toBeDefined();
});

describe("a protected Stack", () => {
  test("is deleted by the namespace controller and by the garbage collector", async () => {
    for (const { client } of [namespaceController, garbageCollector]) {
      const name = newName();
      await createStack(name, { protect: true }, [stackFinalizer]);
      expect(await denial(remove(client, name))).toBeUndefined();
      const { metadata } = await server.client.get(stacks, refTo(name));
      expect(metadata.deletionTimestamp).toBeDefined();
      const finalizers = { type: "merge", body: { metadata: { finalizers: null } } } as const;
      expect(await denial(operator.client.patch(stacks, refTo(name), { patch: finalizers }))).toBeUndefined();
      expect(await server.client.find(stacks, refTo(name))).toBeUndefined();
    }
  });

  test("is deleted by one request of the namespace controller for all Stacks", async () => {
    await using other = await testNamespace({ server });
    const metadata = { name: "web", namespace: other.name };
    const spec = { stack: "dev", programRef: { name: "program" }, protect: true };
    await server.client.create(stacks, { apiVersion: stacks.apiVersion, kind: stacks.kind, metadata, spec });
    expect((await deleteCollection(namespaceController, stacks, other.name)).status).toBe(200);
    expect(await server.client.find(stacks, metadata)).toBeUndefined();
  });

  test("that requires approval accepts the operator's metadata and status, and unchanged manifests", async () => {
    const name = newName();
    const spec = { ...approval("Always", 3600), protect: true };
    const stack = await createStack(name, spec);
    const metadata = { ...refTo(name), uid: stack.metadata.uid ?? "", finalizers: [stackFinalizer] };
    const { apiVersion, kind } = stacks;
    await operator.client.apply(stacks, { apiVersion, kind, metadata }, { fieldManager: "operator" });
    const status = { type: "merge", body: { status: { observedGeneration: 1 } } } as const;
    await operator.client.patch(stacks, refTo(name), { patch: status, subresource: "status" });
    const manifest = { apiVersion, kind, metadata: refTo(name), spec: stack.spec };
    expect(await denial(editor.client.apply(stacks, manifest, { fieldManager: "argocd-controller" }))).toBeUndefined();
    expect(await denial(change(editor.client, name, { spec }))).toBeUndefined();
    await server.kubectl(["apply", "--as=eve", "--filename", "-"], { input: JSON.stringify(manifest) });
    const annotation = { type: "merge", body: { metadata: { annotations: { note: "new" } } } } as const;
    expect(await denial(editor.client.patch(stacks, refTo(name), { patch: annotation }))).toBeUndefined();
  });
});

describe("the policy of examples/separation-of-duties", () => {
  const file = pathTo("../../../examples/separation-of-duties/policy.yaml");

  beforeAll(async () => {
    await server.kubectl(["apply", "--filename", file]);
    await untilDenied("the policy to be in force", () => approve(lead.client, "lea"));
  }, testTimeoutMs);
  afterAll(() => server.kubectl(["delete", "--filename", file]));

  const message = "users who may change Stacks in this namespace cannot approve changes";

  test("denies Approvals by users who may change Stacks", async () => {
    expect(await denial(approve(lead.client, "lea"))).toContain(message);
    expect(await denial(approve(server.client, "admin"))).toContain(message);
  });

  test("admits Approvals by users who may only approve", async () => {
    expect(await denial(approve(approver.client, "anna"))).toBeUndefined();
  });

  test("does not hide the policy that the operator looks for", async () => {
    const { apiVersion, kind } = approvals;
    const spec = { updateName: "a", updateUid: "a", digest: "a", decision: "Reject", decidedBy: "nobody" } as const;
    const probe = { apiVersion, kind, metadata: { name: "probe", namespace: place.name }, spec };
    expect(await denial(operator.client.create(approvals, probe, { dryRun: true }))).toContain("decidedBy");
  });
});

describe("the policy that protects namespaces", () => {
  const file = pathTo("../../../deploy/policies/namespace-protection.yaml");
  const namespaces = resource({ apiVersion: "v1", kind: "Namespace", plural: "namespaces", namespaced: false });
  let protectedPlace: TestNamespace;

  const label = (value: string | null) =>
    server.client.patch(
      namespaces,
      { name: protectedPlace.name },
      { patch: { type: "merge", body: { metadata: { labels: { "pulumi.com/protect": value } } } } },
    );
  const removal = (dryRun = true) => server.client.delete(namespaces, { name: protectedPlace.name }, { dryRun });

  beforeAll(async () => {
    protectedPlace = await testNamespace({ server, labels: { "pulumi.com/protect": "true" } });
    await server.kubectl(["apply", "--filename", file]);
    await untilDenied("the policy to be in force", () => removal());
  }, testTimeoutMs);

  afterAll(async () => {
    await server.kubectl(["delete", "--filename", file]);
    await label(null);
    await protectedPlace.remove();
  });

  test("denies deleting a namespace with the label", async () => {
    for (const value of ["true", "", "yes"]) {
      await label(value);
      expect(await denial(removal(false))).toContain("the namespace is protected from deletion by the label");
    }
  });

  test("admits deleting a namespace without the label, or with the value false", async () => {
    for (const value of ["false", null]) {
      await label(value);
      expect(await denial(removal())).toBeUndefined();
    }
  });

  test("does not affect other namespaces", async () => {
    expect(await denial(server.client.delete(namespaces, { name: place.name }, { dryRun: true }))).toBeUndefined();
  });
});
