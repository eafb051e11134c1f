/** Why a forge did not do what was requested. */
export type ForgeErrorKind =
  /** The credentials are wrong, or lack a permission. */
  | "unauthorized"
  /** There is no such repository, commit or pull request, or the credentials may not see it. */
  | "notFound"
  | "rateLimited"
  /** The forge rejects the content, or the URL is not allowed: another attempt would fail, too. */
  | "invalid"
  /** Network, timeout, or an error of the server. */
  | "unavailable";

/** The message contains nothing that the server or the user sent, except the host and the path of the request. */
export class ForgeError extends Error {
  readonly kind: ForgeErrorKind;
  /** How long the forge wants to be left alone. */
  readonly retryAfterMs?: number;

  constructor(kind: ForgeErrorKind, message: string, options: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "ForgeError";
    this.kind = kind;
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }
}

/** The response has more bytes than the operator reads of one. */
export class ResponseTooLarge extends ForgeError {
  constructor(host: string, maxBytes: number) {
    super("unavailable", `${host} responded with more than ${maxBytes} bytes`);
  }
}
