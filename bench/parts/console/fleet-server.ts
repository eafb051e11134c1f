/** A minimal API server with many Stacks, so that the console and the browser are measured, not etcd. */
import { stackKind, type Condition, type Stack } from "@pko/api";

interface FleetServer {
  readonly url: string;
  stop(): Promise<void>;
}

const time = "2026-01-01T00:00:00Z";
const resourceVersion = "1000000";
const namespaces = 100;

export function startFleetServer(count: number): FleetServer {
  const list = Array.from({ length: count }, (_, index) => JSON.stringify(stackAt(index)));
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch({ url }) {
      const { pathname, searchParams: query } = new URL(url);
      if (pathname.endsWith("/selfsubjectreviews")) {
        return Response.json({ status: { userInfo: { username: "bench" } } });
      }
      if (query.get("watch")) return new Response(new ReadableStream());
      return page(pathname.endsWith("/stacks") ? list : [], query);
    },
  });
  return { url: server.url.origin, stop: async () => await server.stop(true) };
}

function page(list: readonly string[], query: URLSearchParams): Response {
  const start = Number(query.get("continue") ?? 0);
  const end = start + Number(query.get("limit") ?? list.length);
  const metadata = { resourceVersion, ...(end < list.length && { continue: String(end) }) };
  const body = `{"kind":"List","metadata":${JSON.stringify(metadata)},"items":[${list.slice(start, end).join(",")}]}`;
  return new Response(body, { headers: { "content-type": "application/json" } });
}

const condition = (type: string, status: "True" | "False", reason: string): Condition => ({
  type,
  status,
  reason,
  message: reason === "UpdateFailed" ? "creating Bucket: access denied" : "The last update succeeded: 12 unchanged.",
  lastTransitionTime: time,
});

const ready = [condition("Ready", "True", "ProcessingCompleted")];
const failed = [condition("Ready", "False", "NotReadyStalled"), condition("Stalled", "True", "UpdateFailed")];

/** About as large as a Stack of a real fleet. One of a hundred fails. */
export function stackAt(index: number): Stack {
  const name = `stack-${String(index).padStart(5, "0")}`;
  const { apiVersion, kind } = stackKind;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      namespace: `team-${index % namespaces}`,
      uid: name,
      generation: 1,
      resourceVersion: String(index + 1),
      creationTimestamp: time,
    },
    spec: {
      stack: "dev",
      projectRepo: `https://github.com/acme/team-${index % namespaces}`,
      branch: "main",
      config: { "aws:region": "eu-central-1", size: String(index) },
      envRefs: { TOKEN: { type: "Secret", secret: { name: "pulumi", key: "token" } } },
    },
    status: {
      observedGeneration: 1,
      conditions: index % 100 === 0 ? failed : ready,
      outputs: { address: `https://${name}.example.com` },
      lastUpdate: { name: `${name}-1`, type: "up", state: "succeeded", lastResyncTime: time, summary: "12 unchanged" },
    },
  };
}
