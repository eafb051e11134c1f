/**
 * The fixture of an integration test: a namespace on the API server of this process, the rights of an operator in it, and
 * the operators that the test starts. Each kind of test extends it with what it does: StackScene, WorkspaceScene,
 * UpdateScene, CaScene.
 */
import { builtin, type ApiObject, type Client, type KubeObject, type ObjectRef, type Resource } from "@pko/kube";
import { checkStatus, faultProxy, testNamespace, waitFor, type FaultProxy, type TestNamespace } from "@pko/testkit";
import type { Event } from "kubernetes-types/events/v1";

import { OperatorRights } from "../../rights/operator-rights.ts";
import { apiServerWithApi } from "../api/install.ts";
import { Operator, type OperatorOptions, type OperatorParts, type Wiring } from "./operator.ts";
import { Watches } from "./watches.ts";

export { testTimeoutMs } from "../api/install.ts";

/** An object whose name and namespace are known. */
export type NamespacedRef = ObjectRef & { readonly namespace: string };

export interface SceneParts {
  readonly place: TestNamespace;
  readonly rights: OperatorRights;
}

interface SceneOptions {
  /** Labels of the namespace. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Creates the namespace, with the service account that Kubernetes would create in it. */
export async function openPlace({ labels = {} }: SceneOptions = {}): Promise<SceneParts> {
  const server = await apiServerWithApi();
  const place = await testNamespace({ server, labels });
  const metadata = { name: "default", namespace: place.name };
  await place.client.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata });
  return { place, rights: await OperatorRights.in(place) };
}

export abstract class Scene implements AsyncDisposable {
  readonly namespace: string;
  /** Has all rights. */
  readonly client: Client;
  /** Of the operators. */
  readonly rights: OperatorRights;
  protected readonly watches: Watches;
  readonly #operators: Operator[] = [];
  readonly #cleanups: (() => unknown)[] = [];

  protected constructor({ place, rights }: SceneParts) {
    this.namespace = place.name;
    this.client = place.client;
    this.rights = rights;
    this.watches = new Watches(this);
    this.defer(() => rights[Symbol.asyncDispose]());
    this.defer(() => place.remove());
    this.defer(() => this.watches[Symbol.asyncDispose]());
  }

  /** Registers a cleanup. They run in reverse order. */
  defer(cleanup: () => unknown): void {
    this.#cleanups.push(cleanup);
  }

  ref(name: string): NamespacedRef {
    return { namespace: this.namespace, name };
  }

  /** A proxy between an operator and the API server, which can fail, delay and record requests. */
  async proxy(): Promise<{ readonly proxy: FaultProxy; readonly client: Client }> {
    const proxy = await faultProxy(this.rights.credentials);
    this.defer(() => proxy.close());
    return { proxy, client: this.rights.connect(proxy.credentials) };
  }

  /** Starts an operator, which stops with the scene at the latest. */
  startOperator(options: Partial<OperatorOptions>, wire: (parts: OperatorParts) => Wiring): Operator {
    const operator = new Operator({ client: this.rights.client, namespace: this.namespace, ...options }, wire);
    this.#operators.push(operator);
    this.defer(() => operator.stop());
    return operator;
  }

  /**
   * Waits until the object satisfies the predicate, and until the pass that wrote it has ended. Every status on the way is checked; a
   * failure shows the last one.
   */
  protected async untilObject<T extends KubeObject>(
    resource: Resource<T>,
    name: string,
    { what, is, timeoutMs }: Expectation<T>,
  ): Promise<T> {
    let last: T | undefined;
    let cause: unknown;
    for await (const version of this.watches.versions(resource, name, timeoutMs)) {
      last = version;
      try {
        checkStatus(version);
        if (is(version)) {
          await Promise.all(this.#operators.map((operator) => operator.passesEnd()));
          return version;
        }
        cause = undefined;
      } catch (error) {
        cause = error;
      }
    }
    const status = JSON.stringify(last && "status" in last ? last.status : undefined, undefined, 1);
    throw new Error(`${resource.kind} ${name} is not ${what} after ${timeoutMs} ms: ${status}`, { cause });
  }

  /** The events with this reason, as soon as there is one: an event follows the status that it explains. */
  async events(reason: string): Promise<readonly ApiObject<Event>[]> {
    const recorded = async (): Promise<readonly ApiObject<Event>[] | undefined> => {
      const { items } = await this.client.list(builtin.events, { namespace: this.namespace });
      const matching = items.filter((event) => event.reason === reason);
      return matching.length > 0 ? matching : undefined;
    };
    return await waitFor(recorded, { timeoutMs: 60_000, what: `an event ${reason}` });
  }

  protected async untilDeleted(resource: Resource, name: string): Promise<void> {
    const isDeleted = async (): Promise<boolean> => (await this.client.find(resource, this.ref(name))) === undefined;
    await waitFor(isDeleted, { timeoutMs: 60_000, what: `${resource.kind} ${name} to be deleted` });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (const cleanUp of this.#cleanups.splice(0).toReversed()) {
      try {
        await cleanUp();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join("\n"));
  }
}

interface Expectation<T> {
  /** For the message of a timeout. */
  readonly what: string;
  readonly is: (object: T) => boolean;
  readonly timeoutMs: number;
}
