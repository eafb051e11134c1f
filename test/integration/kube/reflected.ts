/** For the fault tests: a controller that uses a fault proxy, and an admin client that does not. */
import { expect } from "bun:test";

import {
  builtin,
  connect,
  controller,
  done,
  parseKey,
  reflector,
  type Client,
  type Credentials,
  type ApiObject,
  type Reflector,
  type ReflectorOptions,
} from "@pko/kube";
import {
  aManifest,
  faultProxy,
  having,
  inNamespace,
  testNamespace,
  waitFor,
  type ApiServer,
  type FaultProxy,
} from "@pko/testkit";
import type { ConfigMap as ConfigMapFields } from "kubernetes-types/core/v1";

type ConfigMap = ApiObject<ConfigMapFields>;

/**
 * About a twentieth of the production times, so a minute becomes three seconds. That the production times limit
 * recovery to a minute is tested with a manual clock in packages/kube/src/store/reflector.test.ts.
 */
const quickTiming = {
  watchMinMs: 1000,
  watchMaxMs: 1000,
  compareMinMs: 1000,
  compareMaxMs: 1500,
  quietCompareMinMs: 2500,
  quietCompareMaxMs: 2800,
  quietMs: 15_000,
  settleMs: 50,
  graceMs: 500,
  answerMs: 1000,
  // A comparison mostly waits for the response, which does not become faster with the other times.
  comparingShare: 0.2,
  restartMinMs: 20,
  restartMaxMs: 500,
} as const;

/** Far more than three seconds, because the machine may be busy. */
const timeoutMs = 30_000;

interface Stage extends AsyncDisposable {
  readonly namespace: string;
  readonly server: ApiServer;
  readonly proxy: FaultProxy;
  readonly reflected: Reflector<ConfigMap>;
  readonly errors: string[];
  /** By the admin, without the proxy. */
  put(name: string): Promise<void>;
  remove(name: string): Promise<void>;
  /** Waits until the store is in sync and these objects were reconciled; deleted objects have the prefix `-`. */
  recovers(...reconciled: readonly string[]): Promise<void>;
}

interface StageOptions extends ReflectorOptions<ConfigMap> {
  readonly server?: ApiServer;
  /** The credentials of the reflector; an admin's through the proxy if absent. */
  readonly credentials?: (stage: { proxy: FaultProxy; namespace: string; admin: Client }) => Promise<Credentials>;
}

/** The store contains "kept" and "changing" and is in sync. */
export async function setStage(options: StageOptions = {}): Promise<Stage> {
  const { server: ownServer, credentials, ...reflectorOptions } = options;
  const space = await testNamespace(ownServer ? { server: ownServer } : {});
  const { name: namespace, client: admin, server } = space;
  const proxy = await faultProxy(server.credentials);
  const reconciled: string[] = [];
  const errors: string[] = [];
  const access = (await credentials?.({ proxy, namespace, admin })) ?? proxy.credentials;
  const reflected = reflector<ConfigMap>(connect(access), builtin.configMaps, {
    namespaces: [namespace],
    onError: (error, what) => errors.push(`${what}: ${String(error)}`),
    ...reflectorOptions,
    timing: { ...quickTiming, ...reflectorOptions.timing },
  });
  const controlling = controller({
    name: "watchful",
    reflector: reflected,
    async reconcile(key) {
      reconciled.push(reflected.store.get(key) ? parseKey(key).name : `-${parseKey(key).name}`);
      return done;
    },
  });
  const put = async (name: string): Promise<void> => {
    const data = { written: String(performance.now()) };
    const body = aManifest<ConfigMap>(builtin.configMaps, name, inNamespace(namespace), having({ data }));
    await admin.apply(builtin.configMaps, { ...body, metadata: { name, namespace } }, { fieldManager: "admin" });
  };
  const isInSync = async (): Promise<boolean> => {
    const { items } = await admin.list(builtin.configMaps, { namespace });
    return Bun.deepEquals(versions(items), versions(reflected.store.list()));
  };
  await Promise.all([put("kept"), put("changing")]);
  const { signal, abort } = aborter();
  const running = Promise.all([reflected.run(signal), controlling.run({ stop: signal, kill: signal })]);
  const recovers = async (...expected: readonly string[]): Promise<void> => {
    await waitFor(isInSync, { timeoutMs, what: "the store to be in sync with the API server" });
    const areReconciled = (): boolean => {
      expect(reconciled.toSorted()).toEqual(expected.toSorted());
      return true;
    };
    await waitFor(areReconciled, { timeoutMs, what: "the reconciles" });
  };
  await recovers("changing", "kept");
  reconciled.length = 0;
  return {
    namespace,
    server,
    proxy,
    reflected,
    errors,
    put,
    remove: (name) => admin.delete(builtin.configMaps, { name, namespace }),
    recovers,
    async [Symbol.asyncDispose]() {
      abort();
      await running;
      await proxy.close();
      await space.remove();
    },
  };
}

function aborter(): { signal: AbortSignal; abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

function versions(objects: readonly ConfigMap[]): string[] {
  return objects.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).toSorted();
}
