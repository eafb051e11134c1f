/**
 * The CA of the operator and its agents, kept in one Secret of the operator's namespace.
 *
 * The replica that starts first creates it, the others read it. A rotation names the resourceVersion that it is based on, so of
 * two replicas one wins and the other reads again. The operator's own certificate exists in memory only.
 *
 *   the Secret                         what happens to the CA
 *   is deleted, or emptied             written again from memory; a process that has none in memory creates a new CA
 *   contains an unknown CA             joined with the one in memory: agents may trust either
 *   has the rotation annotation        rotated, whatever its age
 *
 * A new CA needs no restart of a pod: Workspaces are requeued, their certificates reissued, and agents reload them from disk
 * (docs/adr/0012-ca-lifecycle.md).
 */
import { caSecretName, formerCaSecretName } from "@pko/api";
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
  type ApiObject,
  type Logger,
  type Registry,
} from "@pko/kube";
import type { Credentials, WorkspaceRef } from "@pko/rpc";
import * as x509Pki from "@pko/rpc/pki";
import { joinAuthorities, trustBundle, type Authorities, type Certificate, type CertificateState } from "@pko/rpc/pki";
import type { Secret } from "kubernetes-types/core/v1";

import { exposeExpiry } from "../shared/certificate-expiry.ts";
import type { OperatorCa } from "./agents.ts";
import { authoritiesIn, buildCaSecret, caSecretPatch, isRotationRequested } from "./ca-secret.ts";
import { ServerClock } from "./server-clock.ts";

/** Issues and assesses certificates. */
export type Pki = Pick<
  typeof x509Pki,
  | "addAuthority"
  | "certificateState"
  | "createAuthorities"
  | "isRotationDue"
  | "issueOperatorCertificate"
  | "issueWorkspaceCertificate"
  | "rotateAuthorities"
>;

interface OperatorCaOptions {
  readonly client: Client;
  /** The operator's own. */
  readonly namespace: string;
  readonly pki?: Pki;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly metrics?: Registry;
}

export function operatorCa(options: OperatorCaOptions): OperatorCa {
  return new SecretCa(options);
}

/** Short enough to restore a deleted Secret before the operator is likely to restart, and to notice a rotation request soon. */
const refreshMs = 60_000;
/** Many agents may be distrusted at the same time. */
const distrustPauseMs = 5000;
/** A lost race means that another replica has written, an unknown result that the API server has a problem. */
const maxRounds = 7;
/** Doubled after each unknown result: twelve seconds in total. */
const firstPauseMs = 100;

/** After an unknown result, the next round shows whether the write took effect. */
type Written =
  { readonly kind: "done" } | { readonly kind: "raced" } | { readonly kind: "unknown"; readonly error: Error };

interface Loaded {
  readonly authorities: Authorities;
  readonly own: Certificate;
}

class SecretCa implements OperatorCa {
  readonly #options: OperatorCaOptions;
  readonly #pki: Pki;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #time: ServerClock;
  #loaded: Loaded | undefined;
  #loading: Promise<Loaded> | undefined;
  #onChange: () => void = () => undefined;
  #isDistrustPaused = false;

  constructor(options: OperatorCaOptions) {
    this.#options = options;
    this.#pki = options.pki ?? x509Pki;
    this.#clock = options.clock ?? systemClock;
    this.#log = (options.log ?? silentLogger).child({ logger: "ca" });
    this.#time = new ServerClock({ client: options.client, clock: this.#clock, log: this.#log });
    if (options.metrics) {
      exposeExpiry(options.metrics, "ca", () => this.#loaded?.authorities.at(-1)?.cert);
      exposeExpiry(options.metrics, "operator", () => this.#loaded?.own.cert);
    }
  }

  async load(): Promise<void> {
    await this.#reload();
  }

  follow(onChange: () => void): () => void {
    this.#onChange = onChange;
    let cancel = (): void => undefined;
    let isStopped = false;
    const reloadLater = (): void => {
      cancel = this.#clock.after(refreshMs, () => void this.#reloadQuietly().finally(() => isStopped || reloadLater()));
    };
    reloadLater();
    return () => {
      isStopped = true;
      cancel();
    };
  }

  distrusted(): void {
    if (this.#isDistrustPaused) return;
    this.#isDistrustPaused = true;
    this.#clock.after(distrustPauseMs, () => (this.#isDistrustPaused = false));
    void this.#reloadQuietly();
  }

  operatorCredentials(): Credentials {
    if (!this.#loaded) throw new Error("the CA is not loaded yet");
    return this.#loaded.own;
  }

  async assess(certificate: Pick<Certificate, "ca" | "cert"> | undefined): Promise<CertificateState> {
    const { authorities } = this.#loaded ?? (await this.#reload());
    const state = this.#pki.certificateState(certificate, authorities, this.#time.local());
    return state === "current"
      ? state
      : this.#pki.certificateState(certificate, authorities, await this.#time.server());
  }

  async workspaceCertificate(workspace: WorkspaceRef): Promise<Certificate> {
    const { authorities } = this.#loaded ?? (await this.#reload());
    return await this.#pki.issueWorkspaceCertificate(authorities, workspace, await this.#time.server());
  }

  /** The CA in memory stays in use while the API server is unreachable. */
  async #reloadQuietly(): Promise<void> {
    try {
      await this.#reload();
    } catch (error) {
      const { namespace } = this.#options;
      this.#log.warn(
        "The CA could not be read or written. The operator continues with the one in memory and retries.",
        // A value of the key `secret` would be redacted.
        { namespace, secretName: caSecretName, error },
      );
    }
  }

  async #reload(): Promise<Loaded> {
    this.#loading ??= this.#read().finally(() => (this.#loading = undefined));
    return await this.#loading;
  }

  async #read(): Promise<Loaded> {
    this.#time.reset();
    const before = this.#loaded;
    const authorities = await this.#settle();
    const own = await this.#ownCertificate(authorities);
    const loaded = { authorities, own };
    this.#loaded = loaded;
    // When this certificate is outdated, those of the workspaces are too.
    if (before && before.own !== own) this.#onChange();
    return loaded;
  }

  async #ownCertificate(authorities: Authorities): Promise<Certificate> {
    const own = this.#loaded?.own;
    const isOutdated = (now: Date): boolean => this.#pki.certificateState(own, authorities, now) !== "current";
    if (own && !(await this.#time.isDue(isOutdated))) return own;
    return await this.#pki.issueOperatorCertificate(authorities, await this.#time.server());
  }

  /** The content of the Secret, after any due change has been written. */
  async #settle(): Promise<Authorities> {
    let lastError: Error | undefined;
    for (let round = 0, pauseMs = firstPauseMs; round < maxRounds; round++) {
      const secret = await this.#find(caSecretName);
      const stored = secret && authoritiesIn(secret);
      if (secret && !stored) this.#log.warn("The Secret of the CA is empty or invalid and is written again.");
      const due = await this.#dueAuthorities(stored, secret);
      if (stored && isSame(due, stored)) return due;
      const written = secret ? await this.#replace(secret, due) : await this.#create(due);
      if (written.kind === "done") return due;
      if (written.kind === "raced") continue;
      lastError = written.error;
      await sleep(this.#clock, pauseMs);
      pauseMs *= 2;
    }
    const name = `${this.#options.namespace}/${caSecretName}`;
    throw lastError ?? new Error(`the CA in Secret ${name} changes too often to be read`);
  }

  async #find(name: string): Promise<ApiObject<Secret> | undefined> {
    const { client, namespace } = this.#options;
    return await client.find(builtin.secrets, { namespace, name });
  }

  async #dueAuthorities(stored: Authorities | undefined, secret: ApiObject<Secret> | undefined): Promise<Authorities> {
    const known = withMemory(stored, this.#loaded?.authorities) ?? (await this.#formerAuthorities());
    if (!known) return await this.#pki.createAuthorities(await this.#time.server());
    if (secret && isRotationRequested(secret) && (await this.#time.isAgreed())) {
      return await this.#pki.addAuthority(known, await this.#time.server());
    }
    const isDue = await this.#time.isDue((now) => this.#pki.isRotationDue(known, now));
    return isDue ? await this.#pki.rotateAuthorities(known, await this.#time.server()) : known;
  }

  /** Earlier versions kept the CA in a Secret of the chart, which Helm and Argo CD may empty or delete. */
  async #formerAuthorities(): Promise<Authorities | undefined> {
    const former = await this.#find(formerCaSecretName);
    return former && authoritiesIn(former);
  }

  async #create(authorities: Authorities): Promise<Written> {
    const { client, namespace } = this.#options;
    try {
      await client.create(builtin.secrets, buildCaSecret({ namespace, name: caSecretName }, authorities));
      this.#log.info("CA stored in a new Secret", { namespace, secretName: caSecretName });
      return { kind: "done" };
    } catch (error) {
      return notWritten(error);
    }
  }

  async #replace(secret: ApiObject<Secret>, authorities: Authorities): Promise<Written> {
    const { client, namespace } = this.#options;
    const patch = { type: "merge", body: caSecretPatch(secret, authorities) } as const;
    try {
      await client.patch(builtin.secrets, { namespace, name: caSecretName }, { patch });
      this.#log.info("CA changed", { trusted: authorities.length });
      return { kind: "done" };
    } catch (error) {
      return notWritten(error);
    }
  }
}

/**
 * A deleted Secret is restored unchanged, since agents trust the CA in memory. If another replica has created a new CA
 * meanwhile, both are kept. A stored CA that shares a certificate with the one in memory is a later version of it.
 */
function withMemory(stored: Authorities | undefined, memory: Authorities | undefined): Authorities | undefined {
  if (!stored || !memory) return stored ?? memory;
  const certs = new Set(memory.map(({ cert }) => cert));
  return stored.some(({ cert }) => certs.has(cert)) ? stored : joinAuthorities(memory, stored);
}

const isSame = (some: Authorities, others: Authorities): boolean => trustBundle(some) === trustBundle(others);

function notWritten(error: unknown): Written {
  if (isAlreadyExists(error) || isConflict(error)) return { kind: "raced" };
  if (isTransient(error)) return { kind: "unknown", error };
  throw error;
}
