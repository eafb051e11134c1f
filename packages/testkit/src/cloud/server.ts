/**
 * A mock of Pulumi Cloud: the part of its API that the CLI needs to log in, to store stacks and their secrets, to run
 * previews and updates, and to open ESC environments. Tests can read and change its state.
 */
import { AccessTokens } from "./access.ts";
import { Environments } from "./environments.ts";
import { answer, toCall, type Call, type Handler, type RoutedRequest } from "./http.ts";
import { Secrets } from "./secrets.ts";
import { Stacks, type CloudStack } from "./stacks.ts";
import { TokenExchange } from "./token-exchange.ts";
import { startUpdate, CloudUpdate, Updates } from "./updates.ts";
import { capabilities, readDefaultOrganization, readUser } from "./user.ts";

interface CloudOptions {
  readonly hostname?: string;
  /** Serves https with this certificate. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Larger checkpoints are sent as deltas. */
  readonly deltaCutoffBytes?: number;
}

export interface Cloud {
  /** For PULUMI_BACKEND_URL, PULUMI_API and `pulumi login`. */
  readonly url: string;
  readonly tokens: AccessTokens;
  readonly exchange: TokenExchange;
  readonly environments: Environments;
  /** Every request so far, as METHOD /path STATUS. */
  readonly requests: readonly string[];
  /** By its full name: organization/project/stack. */
  stack(name: string): CloudStack | undefined;
  /** Starts an update of another user, which locks the stack. `environment` is what that user's CLI would report. */
  hold(name: string, environment?: Readonly<Record<string, string>>): CloudUpdate;
  stop(): Promise<void>;
}

const defaultCutoffBytes = 1024 * 1024;

export function serveCloud(options: CloudOptions = {}): Cloud {
  const { hostname = "127.0.0.1", deltaCutoffBytes = defaultCutoffBytes, tls } = options;
  const tokens = new AccessTokens();
  const exchange = new TokenExchange(tokens);
  const environments = new Environments();
  const stacks = new Stacks();
  const parts: Parts = { stacks, updates: new Updates(stacks), secrets: new Secrets(stacks), environments, exchange };
  const requests: string[] = [];

  const serve = async (request: RoutedRequest, handler: Handler): Promise<Response> => {
    const response = await answer(toCall(request, tokens), handler);
    requests.push(`${request.method} ${new URL(request.url).pathname} ${response.status}`);
    return response;
  };
  const routed = ([path, methods]: readonly [string, Methods]) => {
    const handlers = Object.entries(methods).map(
      ([method, handler]) => [method, (request: RoutedRequest) => serve(request, handler)] as const,
    );
    return [path, Object.fromEntries(handlers)] as const;
  };
  const server = Bun.serve({
    hostname,
    port: 0,
    // In seconds: a stalled response lasts as long as its test.
    idleTimeout: 240,
    ...(tls && { tls }),
    routes: Object.fromEntries(routes(parts, deltaCutoffBytes).map(routed)),
    fetch: (request) => serve(request, () => Response.json({ code: 404, message: "Not Found" }, { status: 404 })),
  });
  return {
    url: `${tls ? "https" : "http"}://${hostname}:${server.port}`,
    tokens,
    exchange,
    environments,
    requests,
    stack: (name) => stacks.named(name),
    hold(name, environment = {}) {
      const stack = stacks.named(name);
      if (!stack) throw new Error(`stack ${name} does not exist`);
      const update = new CloudUpdate({
        kind: "update",
        author: "another-user",
        program: { metadata: { environment } },
      });
      stack.updates.push(update);
      startUpdate(stack, update);
      return update;
    },
    stop: () => server.stop(true),
  };
}

type Methods = Readonly<Partial<Record<"GET" | "HEAD" | "POST" | "PATCH" | "DELETE", Handler>>>;

interface Parts {
  readonly stacks: Stacks;
  readonly updates: Updates;
  readonly secrets: Secrets;
  readonly environments: Environments;
  readonly exchange: TokenExchange;
}

const stackPath = "/api/stacks/:organization/:project/:stack";
const updatePath = `${stackPath}/:kind/:update`;
const escPath = "/api/esc/environments/:organization/yaml";

function routes(parts: Parts, deltaCutoffBytes: number): readonly (readonly [string, Methods])[] {
  const { stacks, secrets, environments, exchange } = parts;
  return [
    ["/api/capabilities", { GET: () => capabilities(deltaCutoffBytes) }],
    ["/api/user", { GET: readUser }],
    ["/api/user/organizations/default", { GET: readDefaultOrganization }],
    ["/api/oauth/token", { POST: (call) => exchange.exchange(call) }],
    [
      "/api/stacks/:organization/:project",
      { HEAD: (call) => stacks.hasProject(call), POST: (call) => stacks.create(call) },
    ],
    [stackPath, { GET: (call) => stacks.read(call), DELETE: (call) => stacks.remove(call) }],
    [`${stackPath}/tags`, { PATCH: (call) => stacks.setTags(call) }],
    [`${stackPath}/export`, { GET: (call) => stacks.export(call) }],
    [`${stackPath}/encrypt`, { POST: (call) => secrets.encrypt(call) }],
    [`${stackPath}/decrypt`, { POST: (call) => secrets.decrypt(call) }],
    [`${stackPath}/batch-encrypt`, { POST: (call) => secrets.batchEncrypt(call) }],
    [`${stackPath}/batch-decrypt`, { POST: (call) => secrets.batchDecrypt(call) }],
    [`${escPath}/check`, { POST: (call) => environments.check(call) }],
    [`${escPath}/open`, { POST: (call) => environments.open(call) }],
    [`${escPath}/open/:session`, { GET: (call) => environments.readOpened(call) }],
    ...updateRoutes(parts),
  ];
}

function updateRoutes({ updates }: Parts): readonly (readonly [string, Methods])[] {
  const creating = ["update", "preview", "refresh", "destroy"].map((kind): readonly [string, Methods] => [
    `${stackPath}/${kind}`,
    { POST: (call: Call) => updates.create(call, kind) },
  ]);
  return [
    ...creating,
    [`${stackPath}/import`, { POST: (call) => updates.import(call) }],
    [`${stackPath}/updates`, { GET: (call) => updates.history(call) }],
    [`${stackPath}/updates/latest`, { GET: (call) => updates.latest(call) }],
    [updatePath, { GET: (call) => updates.status(call), POST: (call) => updates.start(call) }],
    [`${updatePath}/renew_lease`, { POST: (call) => updates.renew(call) }],
    [`${updatePath}/checkpoint`, { PATCH: (call) => updates.patchCheckpoint(call) }],
    [`${updatePath}/checkpointverbatim`, { PATCH: (call) => updates.patchVerbatim(call) }],
    [`${updatePath}/checkpointdelta`, { PATCH: (call) => updates.patchDelta(call) }],
    [`${updatePath}/events/batch`, { POST: (call) => updates.recordEvents(call) }],
    [`${updatePath}/complete`, { POST: (call) => updates.complete(call) }],
    [`${updatePath}/cancel`, { POST: (call) => updates.cancel(call) }],
  ];
}
