/** A watch that the API server ends every 20 seconds, while objects change: no change may be missed. */
import type { ApiServer } from "@pko/testkit";

import type { Load } from "./load.ts";

const changesPerSecond = 20;
const objects = 25;

interface Event {
  readonly object: {
    readonly metadata: { readonly name: string; readonly resourceVersion: string };
    readonly data?: Record<string, string>;
  };
}

export function watchUnderEvents(server: ApiServer, end: AbortSignal): Load {
  const written = new Map<string, string>();
  const seen = new Map<string, string>();
  const counts = { written: 0, events: 0, connections: 0, errors: 0 };
  const path = "/api/v1/namespaces/default/configmaps";

  const call = async (url: string, init: RequestInit): Promise<Response> => {
    const { tls } = await server.credentials.access();
    return await fetch(server.url + url, { ...init, tls });
  };
  const write = async (turn: number): Promise<void> => {
    const name = `soak-${turn % objects}`;
    const body = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name },
      data: { turn: String(turn), pad: "x".repeat(3000) },
    };
    const headers = { "content-type": "application/apply-patch+yaml" };
    const response = await call(`${path}/${name}?fieldManager=soak&force=true`, {
      method: "PATCH",
      headers,
      body: JSON.stringify(body),
    });
    await response.json();
    written.set(name, String(turn));
    counts.written++;
  };
  const writeUntilEnd = async (): Promise<void> => {
    for (let turn = 0; !end.aborted; turn++) {
      await write(turn);
      await Bun.sleep(1000 / changesPerSecond);
    }
  };
  const follow = async (version: string): Promise<string> => {
    const query = `watch=1&allowWatchBookmarks=true&timeoutSeconds=20&resourceVersion=${version}`;
    const response = await call(`${path}?${query}`, {});
    counts.connections++;
    let last = version;
    for await (const line of lines(response)) {
      const { object } = JSON.parse(line) as Event;
      last = object.metadata.resourceVersion;
      if (object.data?.["turn"] === undefined) continue;
      seen.set(object.metadata.name, object.data["turn"]);
      counts.events++;
    }
    return last;
  };
  const followUntilEnd = async (): Promise<void> => {
    const list = (await (await call(`${path}?limit=1`, {})).json()) as { metadata: { resourceVersion: string } };
    let version = list.metadata.resourceVersion;
    // One more connection after the last write, for the last events.
    for (let isLast = false; !isLast;) {
      isLast = end.aborted;
      version = await follow(version).catch(() => (counts.errors++, version));
    }
  };

  return {
    done: Promise.all([writeUntilEnd(), followUntilEnd()]),
    summary: () =>
      `watch: ${counts.events}/${counts.written} events, ${counts.connections} connections, ${counts.errors} errors`,
    faults: () =>
      [...written]
        .filter(([name, turn]) => seen.get(name) !== turn)
        .map(([name]) => `the last change of ${name} was never seen`),
  };
}

async function* lines(response: Response): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}
