/**
 * The versions of the CLIs that agents reported, by their executables. Agents of the same namespace get them with their
 * requests and need not start the CLI to read its version. Namespaces share nothing: a pod can report any version.
 */
import { maxKnownClis, type KnownCli } from "@pko/rpc";

const maxNamespaces = 10_000;

export class KnownClis {
  readonly #byNamespace = new Map<string, readonly KnownCli[]>();

  in(namespace: string): readonly KnownCli[] {
    return this.#byNamespace.get(namespace) ?? [];
  }

  learn(namespace: string, known: KnownCli): void {
    const others = this.in(namespace).filter(({ cli }) => cli !== known.cli);
    // At the end of the map: namespaces without new pods are dropped first.
    this.#byNamespace.delete(namespace);
    this.#byNamespace.set(namespace, [known, ...others].slice(0, maxKnownClis));
    const [oldest] = this.#byNamespace.keys();
    if (this.#byNamespace.size > maxNamespaces && oldest !== undefined) this.#byNamespace.delete(oldest);
  }
}
