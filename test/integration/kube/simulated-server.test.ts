/** The simulated API server (test/simulation) answers random requests like a real one. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { ApiError, builtin, connect, staticCredentials, type Client, type KubeObject, type Resource } from "@pko/kube";
import { seededRandom, testNamespace, testSeed, type SeededRandom } from "@pko/testkit";

import { servedKind } from "../../simulation/api/kinds.ts";
import { ApiFrontend, watchEvent } from "../../simulation/api/server.ts";
import { isMap } from "../../simulation/api/fields.ts";
import { Storage } from "../../simulation/api/storage.ts";

setDefaultTimeout(300_000);

const { configMaps, secrets, statefulSets } = builtin;
const resources = [configMaps, secrets, statefulSets] as unknown as [Resource, ...Resource[]];
const names = ["a", "b", "c"] as const;

/** Runs the request on one server. `versionOf` reads what the server has. */
type Operation = (client: Client, known: Known) => Promise<unknown>;

/** What one server has returned so far, because UIDs and versions differ between servers. */
interface Known {
  /** The latest version and UID of each object, by kind and name. */
  readonly latest: Map<string, { readonly uid: string; readonly resourceVersion: string }>;
  /** The numbers of UIDs and versions, in the order in which they were first seen. */
  readonly numbers: Map<string, number>;
}

test("random requests have the same results on both", async () => {
  await using space = await testNamespace();
  const random = seededRandom(testSeed("requests"));
  const storage = new Storage({ now: () => Date.now(), newUid: () => crypto.randomUUID() });
  const servers = { real: space.client, simulated: simulatedClient(storage) };
  const known = { real: newKnown(), simulated: newKnown() };
  const start = (await space.client.list(configMaps, { namespace: space.name })).resourceVersion;
  const startedAt = storage.revision;
  const history: string[] = [];
  for (let count = 0; count < 400; count++) {
    const [what, operation] = randomOperation(random, space.name);
    history.push(what);
    const [real, simulated] = [
      await outcome(operation, servers.real, known.real),
      await outcome(operation, servers.simulated, known.simulated),
    ];
    const [, plural, name] = what.split(" ");
    const related = history.filter((each) => each.includes(` ${plural} ${name} `) || each.startsWith("status"));
    expect({ request: what, ...simulated }, related.slice(-12).join("\n")).toEqual({ request: what, ...real });
  }
  const expected = simulatedEvents(storage, startedAt, space.name);
  expect(expected.length).toBeGreaterThan(5);
  expect(await realEvents(space.client, { namespace: space.name, from: start, count: expected.length })).toEqual(
    expected,
  );
});

function simulatedClient(storage: Storage): Client {
  const frontend = new ApiFrontend(storage);
  return connect(staticCredentials({ server: "https://simulated", tls: {} }), {
    attempts: 1,
    userAgent: "test",
    transport: async ({ method, url, headers, body }) => {
      const { pathname, search } = new URL(url);
      const request = {
        method,
        path: `${pathname}${search}`,
        headers,
        user: "test",
        ...(body !== undefined && { body }),
      };
      const { status, body: answer } = frontend.handle(request);
      return Response.json(answer, { status });
    },
  });
}

const newKnown = (): Known => ({ latest: new Map(), numbers: new Map() });

async function outcome(operation: Operation, client: Client, known: Known): Promise<object> {
  try {
    return { object: comparable(await operation(client, known), known) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: error.status, reason: error.reason };
  }
}

function randomOperation(random: SeededRandom, namespace: string): [string, Operation] {
  const resource = random.pick(resources);
  const name = random.pick(names);
  const ref = { namespace, name };
  const key = `${resource.plural} ${name}`;
  const precondition = random.pick(["none", "none", "current", "stale", "foreign"] as const);
  const version = ({ latest }: Known): object => preconditions(precondition, latest.get(key));
  const verb = random.pick([
    "create",
    "create",
    "apply",
    "apply",
    "merge",
    "merge",
    "status",
    "delete",
    "get",
    "list",
  ] as const);
  const what = `${verb} ${key} (${precondition})`;
  const body = randomBody(random, resource);
  switch (verb) {
    case "create": {
      const dryRun = random.next() < 0.2;
      const object = { ...body, metadata: { ...body.metadata, ...ref } };
      return [
        `${what}${dryRun ? " dry run" : ""} ${JSON.stringify(object)}`,
        async (client, known) => {
          const created = await client.create(resource, object, { dryRun, fieldManager: "one" });
          return dryRun ? created : remember(known, key, created);
        },
      ];
    }
    case "apply": {
      const fieldManager = random.pick(["one", "two"]);
      const apply: Operation = async (client, known) => {
        const object = { ...body, metadata: { ...body.metadata, ...ref, ...version(known) } };
        return remember(known, key, await client.apply(resource, object, { fieldManager }));
      };
      return [`${what} by ${fieldManager} ${JSON.stringify(body)}`, apply];
    }
    case "merge": {
      const isRelease = random.next() < 0.4;
      const change = isRelease ? { metadata: { finalizers: null } } : randomChange(random, resource);
      const patch: Operation = async (client, known) => {
        const merged = { ...change, metadata: { ...change.metadata, ...version(known) } };
        return remember(
          known,
          key,
          await client.patch(resource, ref, { patch: { type: "merge", body: merged }, fieldManager: "one" }),
        );
      };
      return [`${what} ${JSON.stringify(change)}`, patch];
    }
    case "status": {
      const replicas = 1 + random.below(2);
      const patch: Operation = async (client, known) => {
        const { resourceVersion = "0" } = version(known) as { resourceVersion?: string };
        const operations = [
          ...(precondition === "none"
            ? []
            : [{ op: "replace", path: "/metadata/resourceVersion", value: resourceVersion }]),
          { op: "add", path: "/status", value: { replicas } },
        ];
        const change = {
          patch: { type: "json", body: operations },
          subresource: "status",
          fieldManager: "one",
        } as const;
        return remember(known, `statefulsets ${name}`, await client.patch(statefulSets, ref, change));
      };
      return [`${what} ${replicas}`, patch];
    }
    case "delete": {
      const propagationPolicy = random.pick(["Background", "Foreground", "Orphan"] as const);
      // With a version, a real server may reject the deletion after it has removed finalizers of the garbage collector.
      const uidOf = ({ uid }: { uid?: string }): object => (uid === undefined ? {} : { uid });
      const given = (known: Known): object =>
        propagationPolicy === "Background" ? uidOf(version(known)) : version(known);
      return [
        `${what} ${propagationPolicy}`,
        async (client, known) => client.delete(resource, ref, { propagationPolicy, ...given(known) }),
      ];
    }
    case "get":
      return [what, (client) => client.get(resource, ref)];
    case "list": {
      const labelSelector = `color=${random.pick(["red", "blue"])}`;
      return [
        `${what} ${labelSelector}`,
        async (client) => (await client.list(resource, { namespace, labelSelector })).items,
      ];
    }
  }
}

const neverUid = "00000000-0000-4000-8000-000000000000";

function preconditions(kind: "none" | "current" | "stale" | "foreign", latest: object | undefined): object {
  switch (kind) {
    case "none":
      return {};
    case "current":
      return latest ?? {};
    case "stale":
      // The version that no object has, with which the operator creates by an apply.
      return { resourceVersion: "1" };
    case "foreign":
      return { uid: neverUid };
  }
}

function randomBody(random: SeededRandom, resource: Resource): KubeObject {
  const { apiVersion, kind } = resource;
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: neverUid };
  const labels = { color: random.pick(["red", "blue"]), ...(random.next() < 0.3 && { size: "big" }) };
  const metadata = {
    labels,
    ...(random.next() < 0.3 && { annotations: { note: random.pick(["x", "y"]) } }),
    ...(random.next() < 0.3 && { finalizers: [random.pick(["example.com/one", "example.com/two"])] }),
    ...(random.next() < 0.3 && { ownerReferences: [owner] }),
  };
  return { apiVersion, kind, metadata, ...randomContent(random, resource) };
}

function randomContent(random: SeededRandom, { plural }: Resource): object {
  const keys = ["x", "y", "z"].filter(() => random.next() < 0.5);
  const data = Object.fromEntries(keys.map((each) => [each, random.pick(["MQ==", "Mg=="])]));
  if (plural !== "statefulsets") return keys.length > 0 ? { data } : {};
  const matchLabels = { app: "web" };
  const containers = [{ name: "main", image: `image:${random.below(3)}` }];
  const template = { metadata: { labels: matchLabels }, spec: { containers } };
  return { spec: { serviceName: "web", replicas: random.below(3), selector: { matchLabels }, template } };
}

function randomChange(
  random: SeededRandom,
  { plural }: Resource,
): { readonly metadata?: object; readonly [field: string]: unknown } {
  const chance = random.next();
  if (chance < 0.3) return { metadata: { labels: { color: random.pick(["red", null]) } } };
  if (chance < 0.5) return { metadata: { finalizers: ["example.com/one"] } };
  if (plural === "statefulsets") return { spec: { replicas: random.below(3) } };
  return { data: { x: random.pick(["MQ==", null]), y: "Mg==" } };
}

function remember<T extends KubeObject>({ latest }: Known, key: string, object: T): T {
  const { uid = "", resourceVersion = "" } = object.metadata;
  latest.set(key, { uid, resourceVersion });
  return object;
}

/** Without what differs between two servers in any case: numbers instead of UIDs and versions, and no defaults. */
function comparable(value: unknown, known: Known): unknown {
  if (Array.isArray(value)) return value.map((each) => comparable(each, known));
  if (typeof value !== "object" || value === null || !("metadata" in value)) return value ?? "done";
  const { metadata, spec, ...rest } = value as KubeObject & { spec?: { replicas?: number }; status?: object };
  const {
    managedFields: _,
    creationTimestamp: __,
    deletionTimestamp,
    resourceVersion = "",
    uid = "",
    namespace: ___,
    ...kept
  } = metadata;
  const numberOf = (text: string): number => {
    const number = known.numbers.get(text) ?? known.numbers.size;
    known.numbers.set(text, number);
    return number;
  };
  // A dry run has a UID that nobody sees again.
  const identity = resourceVersion === "" ? {} : { uid: numberOf(uid), version: numberOf(`${uid} ${resourceVersion}`) };
  const { status, ...others } = rest;
  return sorted({
    ...others,
    ...(spec && { replicas: spec.replicas }),
    // A real server adds zeros.
    status: status && "replicas" in status ? status.replicas : 0,
    metadata: { ...kept, ...identity, isDeleting: deletionTimestamp !== undefined },
  });
}

/** With the keys of all maps in order, to compare objects. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sorted(value[key])]),
  );
}

interface Event {
  readonly type: string;
  readonly object: unknown;
}

function simulatedEvents(storage: Storage, revision: number, namespace: string): Event[] {
  const known = newKnown();
  const watch = {
    kind: servedKind(configMaps),
    matches: ({ metadata }: KubeObject) => metadata.namespace === namespace && metadata.labels?.["color"] === "red",
    revision,
    timeoutMs: undefined,
    isMetadata: false,
  };
  return storage.since(revision).flatMap((change) => {
    const event = watchEvent(watch, change);
    return event ? [{ type: event.type, object: comparable(event.object, known) }] : [];
  });
}

async function realEvents(
  client: Client,
  { namespace, from, count }: { readonly namespace: string; readonly from: string; readonly count: number },
): Promise<Event[]> {
  const known = newKnown();
  const events: Event[] = [];
  const options = { namespace, resourceVersion: from, labelSelector: "color=red" };
  for await (const event of client.watch(configMaps, options)) {
    if (event.type === "BOOKMARK") continue;
    events.push({ type: event.type, object: comparable(event.object, known) });
    if (events.length === count) break;
  }
  return events;
}
