/** The key of the secret in the Secret that a Receiver names. */
import type { Receiver } from "@pko/api";

const defaultKey = "token";

export const secretKeyOf = ({ spec }: Receiver): string => spec.secretRef.key ?? defaultKey;
