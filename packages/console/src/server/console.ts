/** The console's HTTP server. */
import { silentLogger, systemClock, type Clock, type Logger } from "@pko/kube";

import type { Assets } from "../../build.ts";
import { limits, urlTokenParameter } from "../shared/contract.ts";
import { assetServer, loadAssets } from "./assets.ts";
import { Callers, type SignIn } from "./callers.ts";
import { consoleHandler } from "./handler.ts";

export interface ConsoleOptions {
  readonly signIn: SignIn;
  /** 0 for any free port. */
  readonly port: number;
  /** With a kubeconfig, it serves only this machine, whatever is given. */
  readonly hostname?: string;
  /**
   * The names, with their ports, by which browsers reach it: requests for others are refused. With a kubeconfig, a name
   * of localhost that nobody else knows, so that its cookie is not sent to other ports of this machine.
   */
  readonly hosts?: readonly string[];
  /** Those of this package if absent. */
  readonly assets?: Assets;
  readonly clock?: Clock;
  readonly log?: Logger;
}

export interface Console {
  /** With a kubeconfig, it has the token that can be used once. */
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

export async function startConsole(options: ConsoleOptions): Promise<Console> {
  const { signIn, clock = systemClock, log = silentLogger } = options;
  const isLocal = signIn.mode === "kubeconfig";
  const callers = new Callers(signIn, clock);
  const assets = assetServer(options.assets ?? (await loadAssets()));
  const names = options.hosts ?? [];
  const hosts: string[] = [];
  const origins = { hosts, loopback: !isLocal };
  const isAnyHost = !isLocal && names.length === 0;
  const handle = consoleHandler({
    signIn,
    callers,
    origins: isAnyHost ? { loopback: true } : origins,
    assets,
    clock,
    log,
  });
  const server = Bun.serve({
    port: options.port,
    hostname: isLocal ? "127.0.0.1" : (options.hostname ?? "0.0.0.0"),
    maxRequestBodySize: limits.bodyBytes,
    // Longer than between two heartbeats of a stream: a browser that does not read is disconnected.
    idleTimeout: 4 * limits.heartbeatSeconds,
    fetch: async (request, server) => await handle(request, server.requestIP(request)?.address ?? ""),
    error(error) {
      log.error("a request failed", { error });
      return new Response(null, { status: 500 });
    },
  });
  const port = server.port ?? options.port;
  const local = [`127.0.0.1:${port}`, `localhost:${port}`];
  hosts.push(...(isLocal ? [...names.map((name) => `${name}:${port}`), ...local] : names));
  const [host = ""] = isLocal ? hosts : [`${server.hostname}:${port}`];
  const fragment = callers.urlToken === undefined ? "" : `#${urlTokenParameter}=${callers.urlToken}`;
  return {
    url: `http://${host}/${fragment}`,
    port,
    async stop() {
      callers.stop();
      await server.stop(true);
    },
  };
}
