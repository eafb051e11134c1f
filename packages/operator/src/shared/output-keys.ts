/** Where the outputs of a Stack are stored: one Secret per Stack, one key per output. */
import { textHash } from "./digest.ts";

export const stackOutputsSecretOf = (stackName: string): string => `${stackName}-outputs`;

/** The key of an output in a Secret. Pulumi allows names that are no valid keys; such an output gets a hash of its name. */
export function outputKeyOf(name: string): string {
  if (name.length <= 253 && /^[-._a-zA-Z0-9]+$/.test(name) && !name.startsWith("..") && name !== ".") return name;
  return `output-${textHash(name, 16)}`;
}
