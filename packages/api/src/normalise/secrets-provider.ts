/** What encrypts a stack's secrets: Pulumi's own words, or the address of a key in one of the services that it knows. */
import type { Findings } from "./findings.ts";

const words = ["default", "passphrase"];
const schemes = ["awskms", "azurekeyvault", "gcpkms", "hashivault"];

export function checkSecretsProvider(provider: string | undefined, findings: Findings): void {
  if (!provider || words.includes(provider)) return;
  const [, scheme = "", key = ""] = /^([a-z0-9]+):\/\/([^?]*)/.exec(provider) ?? [];
  if (schemes.includes(scheme) && key !== "") return;
  const remedy = `use ${words.join(", ")}, or one of ${schemes.map((name) => `${name}://KEY`).join(", ")}`;
  findings.problem("spec.secretsProvider", { message: "is not a secrets provider of Pulumi", remedy });
}
