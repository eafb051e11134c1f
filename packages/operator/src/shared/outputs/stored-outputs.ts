/** The outputs of an Update, as the Secret that the Update controller writes stores them for the Stack controller. */
import { secretOutputsAnnotation } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

/** On the Secret: the names of outputs that are not valid keys, by key. */
export const outputNamesAnnotation = "auto.pulumi.com/output-names";

interface StoredOutput {
  readonly name: string;
  readonly secret: boolean;
  /** JSON. */
  readonly json: string;
}

/** Reads the outputs back from their Secret. */
export function readOutputs({ metadata, data = {} }: ApiObject<Secret>): StoredOutput[] {
  const secrets = new Set<unknown>(parsed(metadata.annotations?.[secretOutputsAnnotation], []));
  const names: Readonly<Record<string, unknown>> = parsed(metadata.annotations?.[outputNamesAnnotation], {});
  return Object.entries(data).map(([key, value]) => {
    const name = names[key];
    return {
      name: typeof name === "string" ? name : key,
      secret: secrets.has(key),
      json: Buffer.from(value, "base64").toString(),
    };
  });
}

function parsed<T extends object>(text: string | undefined, otherwise: T): T {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return typeof value === "object" && value !== null && Array.isArray(value) === Array.isArray(otherwise)
      ? (value as T)
      : otherwise;
  } catch {
    return otherwise;
  }
}
