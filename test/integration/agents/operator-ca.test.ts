/** The CA of the operator, in a Secret of a real API server. */
import { describe, expect, test } from "bun:test";
import { caRotationRequestAnnotation, caSecretName, formerCaSecretName } from "@pko/api";
import {
  builtin,
  connect,
  logger,
  manualClock,
  systemClock,
  type Client,
  type Clock,
  type ManualClock,
} from "@pko/kube";
import { operatorCa } from "@pko/operator";
import { splitBundle } from "@pko/rpc";
import { faultProxy, testNamespace, waitFor, type TestNamespace, type Verdict } from "@pko/testkit";

const web = { namespace: "prod", name: "web" };
const minute = 60_000;
const day = 24 * 60 * minute;
const year = 365 * day;

function authorityIn({ name, client }: TestNamespace, clock: Clock = systemClock, through: Client = client) {
  return operatorCa({ client: through, namespace: name, clock });
}

/** An API server whose clock is `aheadMs` ahead of the operator's. */
function withServerTime(client: Client, clock: Clock, aheadMs = 0): Client {
  return { ...client, serverTime: () => Promise.resolve(new Date(clock.now() + aheadMs)) };
}

/** Operator and API server both use the clock of the test. */
function timedAuthorityIn({ name, client }: TestNamespace, clock: ManualClock) {
  return operatorCa({ client: withServerTime(client, clock), namespace: name, clock });
}

async function stored({ name, client }: TestNamespace): Promise<string | undefined> {
  const secret = await client.get(builtin.secrets, { namespace: name, name: caSecretName });
  return secret.data?.["authorities.json"];
}

async function store({ name, client }: TestNamespace, secretName: string, text: string): Promise<void> {
  await client.create(builtin.secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: name, name: secretName },
    data: { "authorities.json": Buffer.from(text).toString("base64") },
  });
}

const storeNonsense = (namespace: TestNamespace): Promise<void> => store(namespace, caSecretName, "nonsense");

async function patchSecret({ name, client }: TestNamespace, body: object): Promise<void> {
  await client.patch(builtin.secrets, { namespace: name, name: caSecretName }, { patch: { type: "merge", body } });
}

async function deleteSecret({ name, client }: TestNamespace): Promise<void> {
  await client.delete(builtin.secrets, { namespace: name, name: caSecretName });
}

test("replicas that start together agree on one CA", async () => {
  await using namespace = await testNamespace();
  const replicas = Array.from({ length: 8 }, () => authorityIn(namespace));
  await Promise.all(replicas.map((replica) => replica.load()));
  const bundles = new Set(replicas.map((replica) => replica.operatorCredentials().ca));
  expect(bundles.size).toBe(1);
});

test("a lost response does not lead to a second CA", async () => {
  await using namespace = await testNamespace();
  await using proxy = await faultProxy(namespace.server.credentials);
  const remove = proxy.on(({ isWrite }) => (isWrite ? { cut: "after" } : undefined));
  const loading = authorityIn(namespace, systemClock, connect(proxy.credentials));
  await loading.load();
  remove();
  expect(loading.operatorCredentials().ca).toBe((await authorityIn(namespace).workspaceCertificate(web)).ca);
});

describe("errors of the API server at the start are retried, and lead to one CA", () => {
  test("when it is created: a write that failed, then one whose response was lost", async () => {
    await using namespace = await testNamespace();
    await loadThroughFaults(namespace, [{ status: 500 }, { cut: "after" }]);
  });

  test("when it is replaced", async () => {
    await using namespace = await testNamespace();
    await storeNonsense(namespace);
    await loadThroughFaults(namespace, [{ status: 500 }, { status: 503 }]);
  });
});

/** Each write gets the next fault. */
async function loadThroughFaults(namespace: TestNamespace, faults: readonly Verdict[]): Promise<void> {
  await using proxy = await faultProxy(namespace.server.credentials);
  const left = [...faults];
  proxy.on(({ isWrite }) => (isWrite ? left.shift() : undefined));
  const loading = authorityIn(namespace, systemClock, connect(proxy.credentials, { attempts: 1 }));
  await loading.load();
  expect(left).toBeEmpty();
  expect(loading.operatorCredentials().ca).toBe((await authorityIn(namespace).workspaceCertificate(web)).ca);
}

test("a workspace's certificate is current, also after a restart of the operator", async () => {
  await using namespace = await testNamespace();
  const first = authorityIn(namespace);
  const certificate = await first.workspaceCertificate(web);
  expect(await first.assess(certificate)).toBe("current");
  expect(await authorityIn(namespace).assess(certificate)).toBe("current");
});

test("a certificate of another CA must be replaced", async () => {
  await using namespace = await testNamespace();
  await using other = await testNamespace();
  const foreign = await authorityIn(other).workspaceCertificate(web);
  expect(await authorityIn(namespace).assess(foreign)).toBe("issuerReplaced");
});

test("a new CA is added to an old one, once, whichever replica detects it first", async () => {
  await using namespace = await testNamespace();
  const clock = manualClock();
  const replicas = Array.from({ length: 4 }, () => timedAuthorityIn(namespace, clock));
  await Promise.all(replicas.map((replica) => replica.load()));
  await clock.advance(250 * day);
  await Promise.all(replicas.map((replica) => replica.load()));
  const bundles = new Set(replicas.map((replica) => replica.operatorCredentials().ca));
  expect(bundles.size).toBe(1);
  expect(splitBundle([...bundles][0] ?? "")).toHaveLength(2);
});

describe("the Secret, while the operator runs", () => {
  test("is restored with the same CA within a minute after it was deleted, without a change for workspaces", async () => {
    await using namespace = await testNamespace();
    const clock = manualClock();
    const running = timedAuthorityIn(namespace, clock);
    await running.load();
    const before = await stored(namespace);
    let changes = 0;
    const stop = running.follow(() => changes++);
    await deleteSecret(namespace);
    await clock.advance(minute);
    await waitFor(async () => (await stored(namespace).catch(() => undefined)) === before, { what: "the Secret" });
    expect(changes).toBe(0);
    stop();
    expect(clock.pending).toBe(0);
  });

  test("is restored with the same CA after it was emptied, as by a forced upgrade or a replacing sync", async () => {
    await using namespace = await testNamespace();
    const running = authorityIn(namespace);
    await running.load();
    const before = await stored(namespace);
    await patchSecret(namespace, { data: null });
    await running.load();
    expect(await stored(namespace)).toBe(before);
  });

  test("keeps both CAs if another replica has created a new one meanwhile", async () => {
    await using namespace = await testNamespace();
    const running = authorityIn(namespace);
    const before = await running.workspaceCertificate(web);
    await deleteSecret(namespace);
    const restarted = authorityIn(namespace);
    await restarted.load();
    await running.load();
    await restarted.load();
    for (const replica of [running, restarted]) {
      const { ca } = replica.operatorCredentials();
      expect(splitBundle(ca)).toHaveLength(2);
      expect(ca).toContain(before.ca.trim());
    }
    // Agents that trust the first CA still get certificates that it has signed.
    expect(await running.assess({ ...before, ca: running.operatorCredentials().ca })).toBe("current");
  });

  test("is rotated when its annotation requests it, and workspaces are checked", async () => {
    await using namespace = await testNamespace();
    const clock = manualClock();
    const running = timedAuthorityIn(namespace, clock);
    await running.load();
    const certificate = await running.workspaceCertificate(web);
    let changes = 0;
    const stop = running.follow(() => changes++);
    await patchSecret(namespace, { metadata: { annotations: { [caRotationRequestAnnotation]: "now" } } });
    await clock.advance(minute);
    await waitFor(() => changes === 1, { what: "the rotation" });
    expect(await running.assess(certificate)).toBe("trustOutdated");
    const ref = { namespace: namespace.name, name: caSecretName };
    const { metadata } = await namespace.client.get(builtin.secrets, ref);
    expect(metadata.annotations?.[caRotationRequestAnnotation]).toBeUndefined();
    // Once every agent trusts it, the new CA signs.
    await clock.advance(130 * minute);
    await waitFor(async () => (await running.assess(certificate)) === "issuerReplaced", { what: "the new CA to sign" });
    stop();
  });

  test("is read immediately when an agent is not trusted, but not for each agent", async () => {
    await using namespace = await testNamespace();
    let reads = 0;
    const through: Client = {
      ...namespace.client,
      find: (resource, ref, options) => {
        reads++;
        return namespace.client.find(resource, ref, options);
      },
    };
    const clock = manualClock();
    const running = authorityIn(namespace, clock, withServerTime(through, clock));
    await running.load();
    reads = 0;
    for (let agent = 0; agent < 10; agent++) running.distrusted();
    await running.load();
    expect(reads).toBe(1);
    await clock.advance(5000);
    running.distrusted();
    await running.load();
    expect(reads).toBe(2);
  });
});

describe("at the start", () => {
  test("an invalid Secret is written again", async () => {
    await using namespace = await testNamespace();
    await storeNonsense(namespace);
    const starting = authorityIn(namespace);
    await starting.load();
    expect(splitBundle(starting.operatorCredentials().ca)).toHaveLength(1);
  });

  test("the CA of an earlier version is copied from the Secret of its chart, which is not changed", async () => {
    await using namespace = await testNamespace();
    await using earlier = await testNamespace();
    const former = authorityIn(earlier);
    const certificate = await former.workspaceCertificate(web);
    const text = Buffer.from((await stored(earlier)) ?? "", "base64").toString();
    await store(namespace, formerCaSecretName, text);
    const upgraded = authorityIn(namespace);
    await upgraded.load();
    expect(await upgraded.assess(certificate)).toBe("current");
    // The chart's Secret is no longer needed.
    const ref = { namespace: namespace.name, name: formerCaSecretName };
    await namespace.client.delete(builtin.secrets, ref);
    expect(await authorityIn(namespace).assess(certificate)).toBe("current");
  });

  test("a CA that has expired while no operator ran is replaced", async () => {
    await using namespace = await testNamespace();
    const clock = manualClock();
    const before = await timedAuthorityIn(namespace, clock).workspaceCertificate(web);
    await clock.advance(400 * day);
    const restarted = timedAuthorityIn(namespace, clock);
    await restarted.load();
    expect(splitBundle(restarted.operatorCredentials().ca)).toHaveLength(1);
    expect(await restarted.assess(before)).not.toBe("current");
  });
});

describe("a clock that is wrong by a year", () => {
  test.each([
    ["the operator's, ahead", -year],
    ["the operator's, behind", year],
  ])("does not replace the CA or a certificate: %s", async (_, serverAheadMs) => {
    await using namespace = await testNamespace();
    const before = await authorityIn(namespace).workspaceCertificate(web);
    const wrong: Clock = { ...systemClock, now: () => Date.now() - serverAheadMs };
    const confused = authorityIn(namespace, wrong);
    await confused.load();
    expect(confused.operatorCredentials().ca).toBe(before.ca);
    expect(await confused.assess(before)).toBe("current");
    // The certificates that it issues meanwhile are valid for correct clocks.
    const issued = await confused.workspaceCertificate(web);
    expect(await authorityIn(namespace).assess(issued)).toBe("current");
  });

  test("does not replace the CA if it is the API server's", async () => {
    await using namespace = await testNamespace();
    const before = await authorityIn(namespace).workspaceCertificate(web);
    const through = withServerTime(namespace.client, systemClock, 2 * year);
    const confused = authorityIn(namespace, systemClock, through);
    await confused.load();
    expect(confused.operatorCredentials().ca).toBe(before.ca);
    expect(await confused.assess(before)).toBe("current");
  });

  test("dates a first CA by the API server's clock", async () => {
    await using namespace = await testNamespace();
    const wrong: Clock = { ...systemClock, now: () => Date.now() + year };
    const certificate = await authorityIn(namespace, wrong).workspaceCertificate(web);
    const right = authorityIn(namespace);
    expect(await right.assess(certificate)).toBe("current");
    expect(right.operatorCredentials().ca).toBe(certificate.ca);
  });

  test("delays a requested rotation until it is correct again", async () => {
    await using namespace = await testNamespace();
    await authorityIn(namespace).load();
    await patchSecret(namespace, { metadata: { annotations: { [caRotationRequestAnnotation]: "now" } } });
    const wrong: Clock = { ...systemClock, now: () => Date.now() + year };
    const confused = authorityIn(namespace, wrong);
    await confused.load();
    expect(splitBundle(confused.operatorCredentials().ca)).toHaveLength(1);
    const right = authorityIn(namespace);
    await right.load();
    expect(splitBundle(right.operatorCredentials().ca)).toHaveLength(2);
  });

  test("is logged once, with the fix, and again only after it was correct", async () => {
    await using namespace = await testNamespace();
    const lines: string[] = [];
    const log = logger({ write: (line) => lines.push(line) });
    let aheadMs = year;
    const clock: Clock = { ...systemClock, now: () => Date.now() + aheadMs };
    const confused = operatorCa({ client: namespace.client, namespace: namespace.name, clock, log });
    const warnings = (): number => lines.filter((line) => line.includes("Correct the clock")).length;
    for (let round = 0; round < 3; round++) await confused.load();
    expect(warnings()).toBe(1);
    aheadMs = 0;
    await confused.load();
    await confused.workspaceCertificate(web);
    aheadMs = -year;
    await confused.load();
    await confused.workspaceCertificate(web);
    expect(warnings()).toBe(2);
  });
});

test("the operator keeps its certificate while the API server is unreachable", async () => {
  await using namespace = await testNamespace();
  const clock = manualClock();
  let isUnreachable = false;
  const through: Client = {
    ...withServerTime(namespace.client, clock),
    find: async (resource, ref, options) => {
      if (isUnreachable) throw new Error("unreachable");
      return await namespace.client.find(resource, ref, options);
    },
  };
  const running = authorityIn(namespace, clock, through);
  await running.load();
  const before = running.operatorCredentials();
  const stop = running.follow(() => undefined);
  isUnreachable = true;
  await clock.advance(day);
  expect(running.operatorCredentials()).toBe(before);
  stop();
});
