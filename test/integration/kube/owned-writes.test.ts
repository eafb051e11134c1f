/** Writes by name on a real API server never touch objects of another owner, even if they appear in between. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  applyOwned,
  asOwner,
  builtin,
  deleteOwned,
  patchOwned,
  type Client,
  type ApiObject,
  type OwnedTarget,
  type Owner,
} from "@pko/kube";
import { testNamespace, type TestNamespace } from "@pko/testkit";
import type { Secret } from "kubernetes-types/core/v1";

setDefaultTimeout(180_000);

let space: TestNamespace;
let client: Client;
let owner: Owner;

beforeAll(async () => {
  space = await testNamespace();
  ({ client } = space);
  const metadata = { name: "owner", namespace: space.name };
  owner = asOwner(
    builtin.configMaps,
    await client.create(builtin.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata }),
  );
});
afterAll(() => space.remove());

const ref = (name: string) => ({ name, namespace: space.name });
const target = (change: Partial<OwnedTarget> = {}): OwnedTarget => ({ client, owner, ...change });
const secrets = builtin.secrets;

const ours = (name: string, data: Record<string, string>) => ({
  resource: secrets,
  body: {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...ref(name), ownerReferences: [{ ...owner, controller: true }] },
    data,
  },
});

const theirs = (name: string): Promise<ApiObject<Secret>> =>
  client.create(secrets, { apiVersion: "v1", kind: "Secret", metadata: ref(name), data: { theirs: "eA==" } });

const options = { fieldManager: "test" };
const data = async (name: string): Promise<unknown> => (await client.get(secrets, ref(name))).data;

/** A client that runs `happen` after its first read. */
function interrupted(interrupt: () => Promise<unknown>): Client {
  let isDone = false;
  return {
    ...client,
    async find(resource, place, options) {
      const found = await client.find(resource, place, options);
      if (!isDone) {
        isDone = true;
        await interrupt();
      }
      return found;
    },
  };
}

describe("an owned apply", () => {
  test("creates and changes an object, and removes fields", async () => {
    expect((await applyOwned(target(), ours("plain", { a: "eA==", b: "eA==" }), options)).kind).toBe("written");
    expect((await applyOwned(target(), ours("plain", { a: "eQ==" }), options)).kind).toBe("written");
    expect(await data("plain")).toEqual({ a: "eQ==" });
  });

  test("does not touch an object of another owner", async () => {
    const before = await theirs("foreign");
    expect(await applyOwned(target(), ours("foreign", { a: "eA==" }), options)).toEqual({
      kind: "foreign",
      occupant: { kind: "Secret", ...ref("foreign") },
    });
    expect(await client.get(secrets, ref("foreign"))).toEqual(before);
  });

  test("does not touch an object that lists the owner, but not as its controller", async () => {
    const metadata = { ...ref("dependent"), ownerReferences: [owner] };
    const before = await client.create(secrets, { apiVersion: "v1", kind: "Secret", metadata });
    expect((await applyOwned(target(), ours("dependent", { a: "eA==" }), options)).kind).toBe("foreign");
    expect(await client.get(secrets, ref("dependent"))).toEqual(before);
  });

  test("does not take over an object that is created between its read and its write", async () => {
    let before: unknown;
    const racing = interrupted(async () => (before = await theirs("raced")));
    expect((await applyOwned(target({ client: racing }), ours("raced", { a: "eA==" }), options)).kind).toBe("foreign");
    expect(await client.get(secrets, ref("raced"))).toEqual(before as never);
  });

  test("does not write to an object that was replaced between its read and its write", async () => {
    await applyOwned(target(), ours("swapped", { a: "eA==" }), options);
    let before: unknown;
    const racing = interrupted(async () => {
      await client.delete(secrets, ref("swapped"));
      before = await theirs("swapped");
    });
    const written = await applyOwned(target({ client: racing }), ours("swapped", { a: "eQ==" }), options);
    expect(written.kind).toBe("foreign");
    expect(await client.get(secrets, ref("swapped"))).toEqual(before as never);
  });

  test("is retried if the object has only changed", async () => {
    await applyOwned(target(), ours("busy", { a: "eA==" }), options);
    const body = { metadata: { labels: { touched: "yes" } } };
    const racing = interrupted(() => client.patch(secrets, ref("busy"), { patch: { type: "merge", body } }));
    expect((await applyOwned(target({ client: racing }), ours("busy", { a: "eQ==" }), options)).kind).toBe("written");
    expect(await data("busy")).toEqual({ a: "eQ==" });
  });

  describe("with what was found before", () => {
    /** A client that counts its reads. */
    const counting = (): { readonly client: Client; reads: number } => {
      const counted = {
        reads: 0,
        client: {
          ...client,
          find: (...request: Parameters<Client["find"]>) => {
            counted.reads += 1;
            return client.find(...request);
          },
        } as Client,
      };
      return counted;
    };

    test("does not read the object first", async () => {
      const counted = counting();
      const by = target({ client: counted.client });
      const created = await applyOwned(by, ours("known", { a: "eA==" }), { ...options, found: {} });
      if (created.kind !== "written") throw new Error(created.kind);
      const again = { ...options, found: { object: created.object } };
      expect((await applyOwned(by, ours("known", { a: "eQ==" }), again)).kind).toBe("written");
      expect([counted.reads, await data("known")]).toEqual([0, { a: "eQ==" }]);
    });

    test("reads the object if that is outdated, and does not touch one of another owner", async () => {
      const counted = counting();
      const by = target({ client: counted.client });
      await applyOwned(target(), ours("appeared", { a: "eA==" }), options);
      expect((await applyOwned(by, ours("appeared", { a: "eQ==" }), { ...options, found: {} })).kind).toBe("written");
      expect([counted.reads, await data("appeared")]).toEqual([1, { a: "eQ==" }]);
      const before = await theirs("taken");
      expect((await applyOwned(by, ours("taken", {}), { ...options, found: {} })).kind).toBe("foreign");
      expect(await client.get(secrets, ref("taken"))).toEqual(before);
    });
  });

  test("does not create an object if `create` is false, and does not change an object with another UID", async () => {
    expect(await applyOwned(target(), ours("none", {}), { ...options, create: false })).toEqual({ kind: "absent" });
    await applyOwned(target(), ours("other", { a: "eA==" }), options);
    const another = target({ uid: "another-uid" });
    expect(await applyOwned(another, ours("other", { a: "eQ==" }), options)).toEqual({ kind: "changed" });
    expect(await data("other")).toEqual({ a: "eA==" });
  });
});

describe("an owned delete", () => {
  const place = (name: string) => ({ resource: secrets, ref: ref(name) });

  test("deletes only objects of the owner", async () => {
    await applyOwned(target(), ours("mine", {}), options);
    expect((await deleteOwned(target(), place("mine"))).kind).toBe("written");
    expect(await client.find(secrets, ref("mine"))).toBeUndefined();
    expect(await deleteOwned(target(), place("mine"))).toEqual({ kind: "absent" });
    const before = await theirs("kept");
    expect((await deleteOwned(target(), place("kept"))).kind).toBe("foreign");
    expect(await client.get(secrets, ref("kept"))).toEqual(before);
  });

  test("does not delete an object that was replaced between its read and its write", async () => {
    await applyOwned(target(), ours("exchanged", {}), options);
    let before: unknown;
    const racing = interrupted(async () => {
      await client.delete(secrets, ref("exchanged"));
      before = await theirs("exchanged");
    });
    expect((await deleteOwned(target({ client: racing }), place("exchanged"))).kind).toBe("foreign");
    expect(await client.get(secrets, ref("exchanged"))).toEqual(before as never);
  });

  test("a patch follows the same rules", async () => {
    await applyOwned(target(), ours("patched", { a: "eA==" }), options);
    const body = { data: { a: "eQ==" } };
    expect((await patchOwned(target(), place("patched"), { body })).kind).toBe("written");
    expect(await data("patched")).toEqual({ a: "eQ==" });
    expect(await patchOwned(target(), place("nothing"), { body })).toEqual({ kind: "absent" });
    const before = await theirs("unpatched");
    expect((await patchOwned(target(), place("unpatched"), { body })).kind).toBe("foreign");
    expect(await client.get(secrets, ref("unpatched"))).toEqual(before);
  });
});
