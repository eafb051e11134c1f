/** The Secret of the CA: how it is written and read. Pure. */
import { caRotationRequestAnnotation } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import { trustBundle, type Authorities } from "@pko/rpc/pki";
import type { Secret } from "kubernetes-types/core/v1";

const authoritiesKey = "authorities.json";
/** For users: the certificates that agents and the operator trust. */
const bundleKey = "ca.crt";

interface SecretRef {
  readonly namespace: string;
  readonly name: string;
}

/** Without labels of Helm or Argo CD: neither may treat it as an object of the chart. */
export function buildCaSecret(ref: SecretRef, authorities: Authorities): ApiObject<Secret> {
  return { apiVersion: "v1", kind: "Secret", metadata: ref, type: "Opaque", data: dataFor(authorities) };
}

/** A merge patch for the version that was read. It also removes the rotation request, which it fulfills. */
export function caSecretPatch({ metadata }: ApiObject<Secret>, authorities: Authorities): object {
  const { resourceVersion, uid } = metadata;
  const annotations = { [caRotationRequestAnnotation]: null };
  return { metadata: { resourceVersion, uid, annotations }, data: dataFor(authorities) };
}

export function isRotationRequested({ metadata }: ApiObject<Secret>): boolean {
  return metadata.annotations?.[caRotationRequestAnnotation] !== undefined;
}

/** Undefined for a Secret that is empty or invalid. */
export function authoritiesIn(secret: ApiObject<Secret>): Authorities | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(secret.data?.[authoritiesKey] ?? "", "base64").toString());
    return Array.isArray(value) && value.length > 0 && value.every(isKeyPair) ? value : undefined;
  } catch {
    return undefined;
  }
}

function dataFor(authorities: Authorities): Record<string, string> {
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  return { [authoritiesKey]: encode(JSON.stringify(authorities)), [bundleKey]: encode(trustBundle(authorities)) };
}

function isKeyPair(value: unknown): value is Authorities[number] {
  if (typeof value !== "object" || value === null) return false;
  return "cert" in value && typeof value.cert === "string" && "key" in value && typeof value.key === "string";
}
