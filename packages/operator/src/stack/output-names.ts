/** Where the outputs of a Stack are found. */
import { createHash } from "node:crypto";

/** The Secret with all outputs of a Stack. */
export const stackOutputsSecretOf = (stackName: string): string => `${stackName}-outputs`;

/** A key of a Secret cannot hold every name that Pulumi allows. */
export function outputKeyOf(name: string): string {
  if (name.length <= 253 && /^[-._a-zA-Z0-9]+$/.test(name) && !name.startsWith("..") && name !== ".") return name;
  return `output-${createHash("sha256").update(name).digest("hex").slice(0, 16)}`;
}
