import { expect, test } from "bun:test";
import {
  builtin,
  controller,
  done,
  eventRecorder,
  fence,
  keyOf,
  leaseElector,
  manager,
  metricsRegistry,
  parseKey,
  reflector,
  uniqueIdentity,
  watching,
  type Client,
  type Manager,
  type Reconcile,
} from "@pko/kube";
import { testNamespace, waitFor, type TestNamespace } from "@pko/testkit";

/**
 * A small operator: every ConfigMap labeled `copy` gets a Secret of the same name, which it owns, with the text of its
 * data and of the ConfigMap `suffix`.
 */
class CopyOperator {
  readonly manager: Manager;
  readonly reconciled: string[] = [];
  readonly metrics = metricsRegistry();
  readonly #stop = new AbortController();
  readonly #run: Promise<unknown>;

  constructor({ client, name: namespace }: TestNamespace) {
    const elector = leaseElector({
      client,
      lease: { namespace, name: "copy-operator" },
      identity: uniqueIdentity("test"),
    });
    const writer = fence(client, elector);
    const recorder = eventRecorder({ client: writer, component: "copy-operator", metrics: this.metrics });
    const scope = { namespaces: [namespace] };
    const sources = reflector(client, builtin.configMaps, { ...scope, labelSelector: "copy" });
    const suffixes = reflector(client, builtin.configMaps, { ...scope, fieldSelector: "metadata.name=suffix" });
    const secrets = reflector(client, builtin.secrets, scope);

    const reconcile: Reconcile = async (key, { signal }) => {
      this.reconciled.push(key);
      const source = sources.store.get(key);
      if (!source) return done;
      const wanted = `${source.data?.["text"]}${suffixes.store.list()[0]?.data?.["text"] ?? ""}`;
      const { name } = parseKey(key);
      if (Buffer.from(secrets.store.get(key)?.data?.["text"] ?? "", "base64").toString() === wanted) return done;
      const owner = { apiVersion: "v1", kind: "ConfigMap", name, uid: source.metadata.uid ?? "" };
      const metadata = { namespace, name, ownerReferences: [owner] };
      const secret = { apiVersion: "v1", kind: "Secret", metadata, stringData: { text: wanted } };
      await writer.apply(builtin.secrets, secret, { fieldManager: "copy-operator", signal });
      recorder.record(source, { type: "Normal", reason: "Copied", message: "the text was copied" });
      return done;
    };
    const copier = controller({
      name: "copy",
      reflector: sources,
      owns: [{ reflector: secrets, ownerKind: builtin.configMaps }],
      watches: [watching({ reflector: suffixes, map: () => sources.store.list().map(keyOf) })],
      metrics: this.metrics,
      reconcile,
    });
    this.manager = manager({
      reflectors: { sources, suffixes, secrets },
      controllers: [copier],
      elector,
      metrics: this.metrics,
      probes: { port: 0, hostname: "127.0.0.1" },
      flush: () => recorder.flush(),
    });
    this.#run = this.manager.run(this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    expect(await this.#run).toBe("clean");
  }
}

async function createSource(client: Client, namespace: string, name: string): Promise<void> {
  const metadata = { namespace, name, labels: { copy: "true" } };
  await client.create(builtin.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata, data: { text: name } });
}

/** Waits until the namespace contains exactly these Secrets with these texts. */
async function copiesBecome({ client, name: namespace }: TestNamespace, wanted: Record<string, string>): Promise<void> {
  await waitFor(async () => {
    const { items } = await client.list(builtin.secrets, { namespace });
    const text = (data = ""): string => Buffer.from(data, "base64").toString();
    const copies = items.map((item) => [item.metadata.name ?? "", text(item.data?.["text"])] as const);
    return Bun.deepEquals(Object.fromEntries(copies), wanted);
  });
}

test("an operator reconciles on changes of its objects, their dependents and references", async () => {
  await using place = await testNamespace();
  const { client, name: namespace } = place;
  await createSource(client, namespace, "early");
  await using operator = new CopyOperator(place);
  await copiesBecome(place, { early: "early" });

  await createSource(client, namespace, "late");
  await copiesBecome(place, { early: "early", late: "late" });

  await client.delete(builtin.secrets, { namespace, name: "early" });
  await copiesBecome(place, { early: "early", late: "late" });

  const suffix = { apiVersion: "v1", kind: "ConfigMap", metadata: { namespace, name: "suffix" }, data: { text: "!" } };
  await client.create(builtin.configMaps, suffix);
  await copiesBecome(place, { early: "early!", late: "late!" });

  const response = await fetch(`http://127.0.0.1:${operator.manager.ports.probes}/readyz`);
  expect([response.status, await response.text()]).toEqual([
    200,
    "[+] reflector sources\n[+] reflector suffixes\n[+] reflector secrets\nok\n",
  ]);
  expect(operator.metrics.expose()).toContain('controller_runtime_reconcile_errors_total{controller="copy"} 0\n');
}, 180_000);

test("an object without changes is not reconciled again", async () => {
  await using place = await testNamespace();
  const { client, name: namespace } = place;
  await using operator = new CopyOperator(place);
  await createSource(client, namespace, "one");
  await copiesBecome(place, { one: "one" });
  await createSource(client, namespace, "two");
  await copiesBecome(place, { one: "one", two: "two" });
  // Once for its creation and once for its Secret, while another object was reconciled.
  expect(operator.reconciled.filter((key) => parseKey(key).name === "one").length).toBeLessThanOrEqual(2);
}, 180_000);

test("kubectl shows events, and repeated ones with a count", async () => {
  await using place = await testNamespace();
  const { client, name: namespace, server } = place;
  const recorder = eventRecorder({ client, component: "copy-operator" });
  await createSource(client, namespace, "one");
  const source = await client.get(builtin.configMaps, { namespace, name: "one" });
  for (let i = 0; i < 3; i++) {
    recorder.record(source, { type: "Warning", reason: "CopyFailed", message: `no luck: ${"x".repeat(2000)}` });
    await recorder.flush();
  }
  const columns = "REASON:.reason,COUNT:.count,LAST:.lastTimestamp,FROM:.source.component";
  const sorted = ["get", "events", "-n", namespace, "--sort-by=.lastTimestamp", `-o=custom-columns=${columns}`];
  expect(await server.kubectl(sorted)).toMatch(/\nCopyFailed +3 +20\S+Z +copy-operator\n$/);
  const described = await server.kubectl(["describe", "configmap", "one", "-n", namespace]);
  expect(described).toMatch(/Warning +CopyFailed +\S+ \(x3 over \S+\) +copy-operator +no luck: x+…/);
}, 180_000);
