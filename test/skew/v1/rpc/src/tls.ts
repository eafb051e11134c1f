/** What each end holds of a certificate, and how a bundle of authorities is read. */

/** PEM. `ca` may hold several certificates, as it does while the authority is being replaced. */
export interface Credentials {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** One entry for each authority: a bundle whose certificates touch without a newline would be read as its first. */
export function splitBundle(bundle: string): string[] {
  return bundle.match(certificate) ?? [];
}
