import { describe, expect, test } from "bun:test";
import { builtin, connect, manualClock, systemClock, type Client, type Clock } from "@pko/kube";
import { authoritySecretName } from "@pko/api";
import { authority } from "@pko/operator";
import { splitBundle } from "@pko/rpc";
import { faultProxy, testNamespace, type TestNamespace, type Verdict } from "@pko/testkit";

const web = { namespace: "prod", name: "web" };
const day = 24 * 3_600_000;

function authorityIn({ name, client }: TestNamespace, clock: Clock = systemClock, through: Client = client) {
  return authority({ client: through, namespace: name, clock });
}

async function stored({ name, client }: TestNamespace): Promise<string | undefined> {
  const secret = await client.get(builtin.secrets, { namespace: name, name: authoritySecretName });
  return secret.data?.["authorities.json"];
}

async function storeNonsense({ name, client }: TestNamespace): Promise<void> {
  await client.create(builtin.secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: name, name: authoritySecretName },
    data: { "authorities.json": Buffer.from("nonsense").toString("base64") },
  });
}

test("replicas that start together agree on one authority", async () => {
  await using namespace = await testNamespace();
  const replicas = Array.from({ length: 8 }, () => authorityIn(namespace));
  await Promise.all(replicas.map((replica) => replica.load()));
  const bundles = new Set(replicas.map((replica) => replica.operatorCredentials().ca));
  expect(bundles.size).toBe(1);
});

test("an answer that is lost is no second authority", async () => {
  await using namespace = await testNamespace();
  await using proxy = await faultProxy(namespace.server.credentials);
  const remove = proxy.on(({ isWrite }) => (isWrite ? { cut: "after" } : undefined));
  const loading = authorityIn(namespace, systemClock, connect(proxy.credentials));
  await loading.load();
  remove();
  expect(loading.operatorCredentials().ca).toBe((await authorityIn(namespace).workspaceCertificate(web)).ca);
});

describe("an API server in trouble at the start is asked again, and there is one authority in the end", () => {
  test("as it is created: nothing was done, then it was done and nobody heard of it", async () => {
    await using namespace = await testNamespace();
    await loadThroughTrouble(namespace, [{ status: 500 }, { cut: "after" }]);
  });

  test("as it is replaced", async () => {
    await using namespace = await testNamespace();
    await storeNonsense(namespace);
    await loadThroughTrouble(namespace, [{ status: 500 }, { status: 503 }]);
  });
});

/** Each write meets the next trouble. */
async function loadThroughTrouble(namespace: TestNamespace, troubles: readonly Verdict[]): Promise<void> {
  await using proxy = await faultProxy(namespace.server.credentials);
  const left = [...troubles];
  proxy.on(({ isWrite }) => (isWrite ? left.shift() : undefined));
  const loading = authorityIn(namespace, systemClock, connect(proxy.credentials, { attempts: 1 }));
  await loading.load();
  expect(left).toBeEmpty();
  expect(loading.operatorCredentials().ca).toBe((await authorityIn(namespace).workspaceCertificate(web)).ca);
}

test("a certificate that serves is kept, for its own workspace and across restarts", async () => {
  await using namespace = await testNamespace();
  const first = authorityIn(namespace);
  const certificate = await first.workspaceCertificate(web);
  expect(await first.workspaceCertificate(web, certificate)).toBe(certificate);
  expect(await authorityIn(namespace).workspaceCertificate(web, certificate)).toBe(certificate);
});

test("a certificate of another authority is replaced", async () => {
  await using namespace = await testNamespace();
  await using other = await testNamespace();
  const foreign = await authorityIn(other).workspaceCertificate(web);
  expect(await authorityIn(namespace).workspaceCertificate(web, foreign)).not.toBe(foreign);
});

test("an old authority is joined by a new one, once, whoever sees it first", async () => {
  await using namespace = await testNamespace();
  const clock = manualClock();
  const replicas = Array.from({ length: 4 }, () => authorityIn(namespace, clock));
  await Promise.all(replicas.map((replica) => replica.load()));
  const before = await replicas[0]?.workspaceCertificate(web);
  await clock.advance(250 * day);
  const certificates = await Promise.all(replicas.map((replica) => replica.workspaceCertificate(web, before)));
  const bundles = new Set(certificates.map(({ ca }) => ca));
  expect(bundles.size).toBe(1);
  expect(splitBundle([...bundles][0] ?? "")).toHaveLength(2);
});

test("a Secret that was removed comes back with the same authority", async () => {
  await using namespace = await testNamespace();
  const clock = manualClock();
  const vouching = authorityIn(namespace, clock);
  await vouching.load();
  const before = await stored(namespace);
  await namespace.client.delete(builtin.secrets, { namespace: namespace.name, name: authoritySecretName });
  await clock.advance(11 * 60_000);
  await vouching.load();
  expect(await stored(namespace)).toBe(before);
});

test("a Secret that cannot be read is written anew", async () => {
  await using namespace = await testNamespace();
  await storeNonsense(namespace);
  const vouching = authorityIn(namespace);
  await vouching.load();
  expect(splitBundle(vouching.operatorCredentials().ca)).toHaveLength(1);
});

test("an API server that is away does not take the certificate away", async () => {
  await using namespace = await testNamespace();
  const clock = manualClock();
  let isAway = false;
  const through: Client = {
    ...namespace.client,
    create: (resource, object, options) => namespace.client.create(resource, object, options),
    find: async (resource, ref, options) => {
      if (isAway) throw new Error("away");
      return await namespace.client.find(resource, ref, options);
    },
  };
  const vouching = authorityIn(namespace, clock, through);
  await vouching.load();
  const before = vouching.operatorCredentials();
  isAway = true;
  await clock.advance(day);
  expect(vouching.operatorCredentials()).toBe(before);
});
