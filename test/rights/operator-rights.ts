/**
 * The account of an operator that runs inside a test and watches only its own namespace, which the test removes. A request with the response 403
 * fails the test, unless the test expects it.
 */
import { connect, type Client, type ConnectOptions, type Credentials } from "@pko/kube";
import type { TestNamespace } from "@pko/testkit";

import { operatorAccount, type OperatorAccount } from "./account.ts";
import { assertNoneForbidden, ForbiddenResponses } from "./forbidden.ts";

export class OperatorRights implements AsyncDisposable {
  readonly #account: OperatorAccount;
  readonly #responses = new ForbiddenResponses();
  readonly #expected: RegExp[] = [];
  /** The operator's client. */
  readonly client: Client;

  private constructor(account: OperatorAccount) {
    this.#account = account;
    this.client = this.connect(account.credentials);
  }

  static async in({ server, name }: TestNamespace): Promise<OperatorRights> {
    return new OperatorRights(await operatorAccount({ admin: server.credentials, home: name, namespaces: [name] }));
  }

  get credentials(): Credentials {
    return this.#account.credentials;
  }

  /** A client whose 403 responses are checked, for example through a proxy. */
  connect(credentials: Credentials, options: ConnectOptions = {}): Client {
    return connect(credentials, { ...options, onResponse: this.#responses.onResponse });
  }

  /** The test expects 403 responses with a matching message. */
  expectForbidden(...patterns: readonly RegExp[]): void {
    this.#expected.push(...patterns);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#account.removeFromCluster();
    assertNoneForbidden(this.#responses.found, this.#expected);
  }
}
