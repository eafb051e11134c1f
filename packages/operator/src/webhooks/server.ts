/** The HTTPS server for webhooks. It runs in every replica, from the start of the process to its end. */
import { systemClock, tokenBucket, type Clock, type Listen, type Logger, type TokenBucket } from "@pko/kube";

import { changedCertificate, type Certificate } from "./certificate.ts";
import { fingerprintOf } from "./leader-address.ts";
import { responseTo } from "./results.ts";

interface ServerOptions {
  readonly listen: Listen;
  readonly certificate: Certificate;
  /** Where the certificate is read from; undefined if it was created for this process. */
  readonly certificateDirectory?: string;
  readonly handle: (request: Request) => Promise<Response>;
  readonly log: Logger;
  readonly clock?: Clock;
}

export interface WebhookServer {
  /** The actual port, once it runs. */
  readonly port: number;
  /** The current certificate, as PEM. */
  readonly certificate: string;
  /** Its SHA-256. */
  readonly fingerprint: string;
  /** Returns a function that stops it. */
  start(): () => Promise<void>;
}

const certificateCheckMs = 60_000;
/** In seconds: how long a connection may be silent, and how long the handshake and the headers may take, however slowly they arrive. */
const idleTimeout = 15;
/** Whoever finds a request that fails must not be able to fill the log. */
const errorLineLimit = { burst: 5, refillMs: 60_000 };

export function webhookServer(options: ServerOptions): WebhookServer {
  return new Server(options);
}

class Server implements WebhookServer {
  readonly #options: ServerOptions;
  readonly #clock: Clock;
  readonly #errorLines: TokenBucket;
  #certificate: Certificate;
  #fingerprint: string;
  #server: Bun.Server<undefined> | undefined;
  #cancelCheck = (): void => undefined;
  #isStopped = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#errorLines = tokenBucket({ ...errorLineLimit, clock: this.#clock });
    this.#certificate = options.certificate;
    this.#fingerprint = fingerprintOf(options.certificate.cert);
  }

  get port(): number {
    return this.#server?.port ?? this.#options.listen.port;
  }

  get certificate(): string {
    return this.#certificate.cert;
  }

  get fingerprint(): string {
    return this.#fingerprint;
  }

  start(): () => Promise<void> {
    this.#server = this.#serve();
    this.#checkLater();
    return async () => {
      this.#isStopped = true;
      this.#cancelCheck();
      await this.#server?.stop(true);
    };
  }

  #serve(): Bun.Server<undefined> {
    const { listen, handle, log } = this.#options;
    const errorLines = this.#errorLines;
    return Bun.serve({
      port: this.port,
      ...(listen.hostname !== undefined && { hostname: listen.hostname }),
      // Another server takes over the port when the certificate changes.
      reusePort: true,
      idleTimeout,
      // The handler has its own limit, which it counts: beyond this one, Bun responds itself.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
      tls: this.#certificate,
      fetch: handle,
      error(error) {
        if (errorLines.take()) log.error("the webhook endpoint failed", { error });
        return responseTo("failed");
      },
    });
  }

  #checkLater(): void {
    if (this.#options.certificateDirectory === undefined) return;
    this.#cancelCheck = this.#clock.after(certificateCheckMs, () => void this.#check());
  }

  async #check(): Promise<void> {
    const { certificateDirectory = "", log } = this.#options;
    const changed = await changedCertificate(certificateDirectory, this.#certificate, log);
    if (this.#isStopped) return;
    if (changed) this.#renew(changed);
    this.#checkLater();
  }

  /** New connections use the new certificate; open ones keep the old one. */
  #renew(certificate: Certificate): void {
    const { log } = this.#options;
    const former = this.#certificate;
    try {
      this.#certificate = certificate;
      const old = this.#server;
      this.#server = this.#serve();
      this.#fingerprint = fingerprintOf(certificate.cert);
      void old?.stop(false);
      log.info("the webhook endpoint uses a new certificate");
    } catch (error) {
      this.#certificate = former;
      log.warn("the new certificate of the webhook endpoint cannot be used; the former one stays in use", { error });
    }
  }
}
