/**
 * Which provider encrypts a stack's secrets. It is set when the stack is created; a later change in the spec has no
 * effect, so the agent reports a warning.
 */
import type { StackKeys } from "./settings.ts";

/** "passphrase", "default" for Pulumi Cloud's own, or the URL of a key. */
export type Provider = string;

export function providerOfKeys({ secretsprovider, encryptionsalt }: StackKeys): Provider | undefined {
  return secretsprovider ?? (encryptionsalt === undefined ? undefined : "passphrase");
}

const exported =
  /"secrets_providers":\s*\{\s*"type":\s*"(\w+)"(?:,\s*"state":\s*\{[^{}]*?"url":\s*("(?:[^"\\]|\\.)*"))?/;

/** Reads the start of `pulumi stack export`; undefined for a stack that has no state yet. */
export function providerInExport(text: string): Provider | undefined {
  const [, type, url] = exported.exec(text) ?? [];
  if (type === "service") return "default";
  if (type === "cloud" && url !== undefined) return JSON.parse(url) as string;
  return type === "passphrase" ? type : undefined;
}

/** `default` is the backend's default, which is a passphrase for a DIY backend. */
export function isProvider(actual: Provider, wanted: Provider): boolean {
  return wanted === actual || (wanted === "default" && actual === "passphrase");
}

export function providerWarning(actual: Provider, wanted: Provider): string {
  return (
    `the stack's secrets are encrypted by ${describe(actual)}, not by ${describe(wanted)}, because secretsProvider ` +
    `applies only when a stack is created; to change the stack, run \`pulumi stack change-secrets-provider "${wanted}"\` ` +
    "where both are available, then delete the workspace's pod; or set secretsProvider to the stack's provider"
  );
}

function describe(provider: Provider): string {
  if (provider === "passphrase") return "a passphrase";
  return provider === "default" ? "the backend" : provider;
}
