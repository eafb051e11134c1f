/**
 * The certificate authority, kept in one Secret of the operator's namespace.
 *
 * Whichever replica comes first creates it, the others read it; a rotation names the version it was decided on, so that of
 * two replicas one wins and the other reads again. The operator's own certificate is only ever in memory.
 */
import { authoritySecretName } from "@pko/api";
import {
  builtin,
  isAlreadyExists,
  isConflict,
  isTransient,
  silentLogger,
  sleep,
  systemClock,
  type Client,
  type Clock,
  type Known,
  type Logger,
} from "@pko/kube";
import type { Credentials } from "@pko/rpc";
import {
  createAuthorities,
  issueOperatorCertificate,
  issueWorkspaceCertificate,
  needsReissue,
  rotateAuthorities,
  trustBundle,
  type Authorities,
  type Certificate,
} from "@pko/rpc/pki";
import type { Secret } from "kubernetes-types/core/v1";

import type { Authority } from "./agents.ts";

interface AuthorityOptions {
  readonly client: Client;
  /** The operator's own. */
  readonly namespace: string;
  readonly secretName?: string;
  readonly clock?: Clock;
  readonly log?: Logger;
}

export function authority(options: AuthorityOptions): Authority {
  return new SecretAuthority(options);
}

/** How long what was read is believed: rotation takes days, so this is often enough. */
const freshMs = 10 * 60_000;
const authoritiesKey = "authorities.json";
/** For people: what agents and the operator trust. */
const bundleKey = "ca.crt";
/** Each lost race means that another replica has written, each unknown answer that the API server is in trouble. */
const maxRounds = 7;
/** Doubled from one unknown answer to the next: twelve seconds in all. */
const firstPauseMs = 100;

/** Whether an answer that was lost, or that tells of the server's own trouble, said yes, the next look tells. */
type Written =
  { readonly kind: "done" } | { readonly kind: "raced" } | { readonly kind: "unknown"; readonly error: Error };

interface Loaded {
  readonly authorities: Authorities;
  readonly own: Certificate;
  readonly atMs: number;
}

class SecretAuthority implements Authority {
  readonly #options: AuthorityOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #ref: { readonly namespace: string; readonly name: string };
  #loaded: Loaded | undefined;
  #loading: Promise<Loaded> | undefined;

  constructor(options: AuthorityOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = (options.log ?? silentLogger).child({ logger: "authority" });
    this.#ref = { namespace: options.namespace, name: options.secretName ?? authoritySecretName };
  }

  async load(): Promise<void> {
    await this.#fresh();
  }

  operatorCredentials(): Credentials {
    if (!this.#loaded) throw new Error("the certificate authority is not loaded yet");
    if (!this.#isFresh(this.#loaded)) this.#refreshSoon();
    return this.#loaded.own;
  }

  async workspaceCertificate(
    workspace: { readonly namespace: string; readonly name: string },
    existing?: Certificate,
  ): Promise<Certificate> {
    const { authorities } = await this.#fresh();
    const now = this.#now();
    if (existing && !needsReissue(existing, authorities, now)) return existing;
    return await issueWorkspaceCertificate(authorities, workspace, now);
  }

  #now(): Date {
    return new Date(this.#clock.now());
  }

  #isFresh({ atMs }: Loaded): boolean {
    return this.#clock.now() - atMs < freshMs;
  }

  /** The certificate in hand is good for days yet: nobody waits for the next. */
  #refreshSoon(): void {
    if (this.#loading) return;
    this.#fresh().catch((error: unknown) => this.#log.warn("the authority could not be read", { error }));
  }

  async #fresh(): Promise<Loaded> {
    if (this.#loaded && this.#isFresh(this.#loaded)) return this.#loaded;
    this.#loading ??= this.#read().finally(() => (this.#loading = undefined));
    return await this.#loading;
  }

  async #read(): Promise<Loaded> {
    const authorities = await this.#settle();
    const now = this.#now();
    const own = this.#loaded?.own;
    this.#loaded = {
      authorities,
      own: own && !needsReissue(own, authorities, now) ? own : await issueOperatorCertificate(authorities, now),
      atMs: now.getTime(),
    };
    return this.#loaded;
  }

  /** What the Secret holds, after whatever is due has been written. */
  async #settle(): Promise<Authorities> {
    let trouble: Error | undefined;
    for (let round = 0, pauseMs = firstPauseMs; round < maxRounds; round++) {
      const secret = await this.#options.client.find(builtin.secrets, this.#ref);
      const stored = secret && parseAuthorities(secret);
      if (secret?.data && !stored) this.#log.warn("the authority's Secret cannot be read and is written anew");
      // What is in memory is what the agents trust: a Secret that someone removed comes back the same.
      const known = stored ?? this.#loaded?.authorities ?? (await createAuthorities(this.#now()));
      const due = await rotateAuthorities(known, this.#now());
      if (due === stored) return due;
      const written = secret ? await this.#replace(secret, due) : await this.#create(due);
      if (written.kind === "done") return due;
      if (written.kind === "raced") continue;
      trouble = written.error;
      await sleep(this.#clock, pauseMs);
      pauseMs *= 2;
    }
    const name = `${this.#ref.namespace}/${this.#ref.name}`;
    throw trouble ?? new Error(`the authority in Secret ${name} changes too often to be read`);
  }

  async #create(authorities: Authorities): Promise<Written> {
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: this.#ref,
      type: "Opaque",
      data: dataOf(authorities),
    };
    try {
      await this.#options.client.create(builtin.secrets, secret);
      this.#log.info("authority created");
      return { kind: "done" };
    } catch (error) {
      return notWritten(error);
    }
  }

  async #replace(secret: Known<Secret>, authorities: Authorities): Promise<Written> {
    const { resourceVersion, uid } = secret.metadata;
    const body = { metadata: { resourceVersion, uid }, data: dataOf(authorities) };
    try {
      await this.#options.client.patch(builtin.secrets, this.#ref, { patch: { type: "merge", body } });
      this.#log.info("authority rotated", { authorities: authorities.length });
      return { kind: "done" };
    } catch (error) {
      return notWritten(error);
    }
  }
}

function notWritten(error: unknown): Written {
  if (isAlreadyExists(error) || isConflict(error)) return { kind: "raced" };
  if (isTransient(error)) return { kind: "unknown", error };
  throw error;
}

function dataOf(authorities: Authorities): Record<string, string> {
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  return { [authoritiesKey]: encode(JSON.stringify(authorities)), [bundleKey]: encode(trustBundle(authorities)) };
}

function parseAuthorities(secret: Known<Secret>): Authorities | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(secret.data?.[authoritiesKey] ?? "", "base64").toString());
    return Array.isArray(value) && value.length > 0 && value.every(isKeyPair) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isKeyPair(value: unknown): value is Authorities[number] {
  if (typeof value !== "object" || value === null) return false;
  return "cert" in value && typeof value.cert === "string" && "key" in value && typeof value.key === "string";
}
