/** The TLS credentials of one side, and how a bundle of CA certificates is read. */

/** In PEM. `ca` may contain several certificates, as it does during a CA rotation. */
export interface Credentials {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** One entry per CA: TLS would read only the first of certificates that no newline separates. */
export function splitBundle(bundle: string): string[] {
  return bundle.match(certificate) ?? [];
}
