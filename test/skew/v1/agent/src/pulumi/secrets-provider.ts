/**
 * Which provider encrypts a stack's secrets. It is chosen when the stack is created; a spec that names another one later
 * changes nothing, and its owner is told so.
 */
import type { StackKeys } from "./settings.ts";

/** "passphrase", "default" for that of Pulumi Cloud, or the address of a key. */
export type Provider = string;

export function providerOfKeys({ secretsprovider, encryptionsalt }: StackKeys): Provider | undefined {
  return secretsprovider ?? (encryptionsalt === undefined ? undefined : "passphrase");
}

const exported =
  /"secrets_providers":\s*\{\s*"type":\s*"(\w+)"(?:,\s*"state":\s*\{[^{}]*?"url":\s*("(?:[^"\\]|\\.)*"))?/;

/** From the beginning of what `pulumi stack export` prints; undefined for a stack that has no state yet. */
export function providerInExport(text: string): Provider | undefined {
  const [, type, url] = exported.exec(text) ?? [];
  if (type === "service") return "default";
  if (type === "cloud" && url !== undefined) return JSON.parse(url) as string;
  return type === "passphrase" ? type : undefined;
}

/** `default` is whatever the backend takes when nothing is said. */
export function isProvider(actual: Provider, wanted: Provider): boolean {
  return wanted === actual || (wanted === "default" && actual === "passphrase");
}

export function providerWarning(actual: Provider, wanted: Provider): string {
  return (
    `the stack's secrets are encrypted by ${named(actual)}, and secretsProvider, which counts only when a stack is ` +
    `created, names ${named(wanted)}; to change it, run \`pulumi stack change-secrets-provider "${wanted}"\` where ` +
    "both can be used, and then delete the workspace's pod; or set secretsProvider to what the stack has"
  );
}

function named(provider: Provider): string {
  if (provider === "passphrase") return "a passphrase";
  return provider === "default" ? "the backend" : provider;
}
