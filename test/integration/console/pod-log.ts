/** The log of a pod without a kubelet: the proxy in front of the API server answers for it. */
import type { FaultProxy } from "@pko/testkit";

interface Line {
  readonly time: string;
  readonly text: string;
}

type Reader = ReadableStreamDefaultController<Uint8Array>;

export class PodLog {
  readonly #lines: Line[] = [];
  readonly #readers = new Set<Reader>();
  #ended = false;

  constructor(proxy: FaultProxy, pod: { readonly namespace: string; readonly name: string }) {
    proxy.on(({ resource, subresource, namespace, name, query }) =>
      resource === "pods" && subresource === "log" && namespace === pod.namespace && name === pod.name
        ? { response: new Response(this.#follow(query.get("sinceTime") ?? "")) }
        : undefined,
    );
  }

  append(...texts: readonly string[]): void {
    for (const text of texts) {
      const line = { time: new Date(Date.UTC(2030, 0, 1) + this.#lines.length * 1000).toISOString(), text };
      this.#lines.push(line);
      for (const reader of this.#readers) reader.enqueue(bytes(line));
    }
  }

  /** As when the container ends. */
  end(): void {
    this.#ended = true;
    for (const reader of this.#readers) reader.close();
    this.#readers.clear();
  }

  #follow(since: string): ReadableStream<Uint8Array> {
    let own: Reader;
    return new ReadableStream<Uint8Array>({
      start: (reader) => {
        own = reader;
        for (const line of this.#lines.filter(({ time }) => time >= since)) reader.enqueue(bytes(line));
        if (this.#ended) reader.close();
        else this.#readers.add(reader);
      },
      cancel: () => void this.#readers.delete(own),
    });
  }
}

const bytes = ({ time, text }: Line): Uint8Array => new TextEncoder().encode(`${time} ${text}\n`);
