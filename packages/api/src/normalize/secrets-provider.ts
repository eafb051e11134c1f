/** Secrets providers of Pulumi: a built-in one, or the URL of a key in a key management service. */
import type { Findings } from "./findings.ts";

const builtIn = ["default", "passphrase"];
const schemes = ["awskms", "azurekeyvault", "gcpkms", "hashivault"];

export function checkSecretsProvider(provider: string | undefined, findings: Findings): void {
  if (!provider || builtIn.includes(provider)) return;
  const [, scheme = "", key = ""] = /^([a-z0-9]+):\/\/([^?]*)/.exec(provider) ?? [];
  if (schemes.includes(scheme) && key !== "") return;
  const remedy = `use ${builtIn.join(", ")}, or one of ${schemes.map((name) => `${name}://KEY`).join(", ")}`;
  findings.problem("spec.secretsProvider", { message: "is not a supported secrets provider", remedy });
}
