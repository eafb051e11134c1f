/** The texts of a Receiver. */
import type { ReceiverType } from "@pko/api";

export const minSecretLength = 16;

export const receiving = (type: ReceiverType, path: string): string =>
  `Webhooks of type ${type} are accepted at the path ${path} of the operator's webhook endpoint.`;

export const webhooksDisabled =
  "Webhooks are disabled in the operator, so Stacks are only polled; an administrator can set the chart's value webhook.enabled.";

export const secretMissing = (name: string): string =>
  `Webhooks are rejected, because Secret ${name} does not exist; create it in the namespace of the Receiver.`;

export const secretForbidden = (name: string): string =>
  `Webhooks are rejected, because the operator may not read Secret ${name}; an administrator has to extend its role.`;

export const secretKeyMissing = (name: string, key: string): string =>
  `Webhooks are rejected, because Secret ${name} has no key ${key}; add the key, or set spec.secretRef.key.`;

export const secretTooShort = (name: string, key: string): string =>
  `Webhooks are rejected, because the secret in key ${key} of Secret ${name} has fewer than ${minSecretLength} characters; use a random one, here and in the settings of the sender.`;
