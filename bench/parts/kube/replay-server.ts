/**
 * A minimal API server for a reflector that sends changes as fast as they are read, so that only our own code is measured,
 * not etcd.
 */
import type { ConfigMap } from "./objects.ts";

interface ReplayServer {
  readonly url: string;
  /** Sends one change of every object, `rounds` times, to the open watch. */
  replay(rounds: number): void;
  stop(): Promise<void>;
}

const linesPerChunk = 50;

export function startReplayServer(objects: readonly ConfigMap[]): ReplayServer {
  let version = objects.length;
  let rounds = 0;
  let wake = Promise.withResolvers<void>();
  const list = objects.map((object, i) => JSON.stringify(withVersion(object, i + 1)));

  async function* changes(): AsyncGenerator<string, never> {
    for (;;) {
      for (; rounds > 0; rounds--) yield* round();
      await wake.promise;
    }
  }

  function* round(): Generator<string> {
    for (let i = 0; i < objects.length; i += linesPerChunk) {
      const chunk = objects.slice(i, i + linesPerChunk).map((object) => withVersion(object, ++version));
      yield chunk.map((object) => `${JSON.stringify({ type: "MODIFIED", object })}\n`).join("");
    }
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch({ url }) {
      const { searchParams: query } = new URL(url);
      if (query.get("watch")) return new Response(toStream(changes()));
      const start = Number(query.get("continue") ?? 0);
      const end = start + Number(query.get("limit") ?? list.length);
      const metadata = { resourceVersion: String(version), ...(end < list.length && { continue: String(end) }) };
      const items = list.slice(start, end).join(",");
      return new Response(`{"kind":"List","metadata":${JSON.stringify(metadata)},"items":[${items}]}`);
    },
  });
  return {
    url: server.url.origin,
    replay(count) {
      rounds = count;
      wake.resolve();
      wake = Promise.withResolvers();
    },
    stop: () => server.stop(true),
  };
}

/** Produces the next chunk when the last one was read. */
function toStream(chunks: AsyncGenerator<string, never>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      controller.enqueue(encoder.encode((await chunks.next()).value));
    },
  });
}

function withVersion(object: ConfigMap, version: number): ConfigMap {
  const metadata = { ...object.metadata, uid: object.metadata.name ?? "", resourceVersion: String(version) };
  return { ...object, metadata };
}
