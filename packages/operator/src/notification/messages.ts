/** The texts of a Notification. */
import type { NotificationType } from "@pko/api";

export const delivering = (type: NotificationType): string =>
  `Events of the Stacks in this namespace are sent as messages of type ${type}.`;

export const suspended = "The Notification is suspended, so nothing is sent; set spec.suspend to false to resume.";

export const secretMissing = (name: string): string =>
  `Nothing can be sent, because Secret ${name} does not exist; create it in the namespace of the Notification, with the URL in the key url.`;

export const secretForbidden = (name: string): string =>
  `Nothing can be sent, because the operator may not read Secret ${name}; an administrator has to extend its role.`;

export const urlMissing = (name: string): string =>
  `Nothing can be sent, because Secret ${name} has no key url; add the key with the URL of the webhook.`;

export const urlInvalid =
  "Nothing can be sent, because the URL is not valid; it must start with https:// or http:// and contain no user or password.";

export const tokenInvalid = (name: string): string =>
  `Nothing can be sent, because the key token of Secret ${name} contains characters that an HTTP header cannot contain; correct the token.`;

export const caInvalid = (name: string): string =>
  `Nothing can be sent, because the key caCert of Secret ${name} contains no certificate in PEM; correct it, or remove the key.`;

export const failing = (cause: string): string =>
  `The last message was not delivered, because ${cause}. It is sent again, at most for an hour.`;

export const dropped = (events: number): string =>
  `${events} ${events === 1 ? "event was" : "events were"} dropped, because they were not delivered within an hour, or were more than the operator keeps; kubectl get stacks shows the current states.`;

/* Causes: clauses that name no URL, because its path may be a secret. */

export const timedOut = (host: string, ms: number): string =>
  `${host} did not respond within ${ms / 1000} seconds; check that the service runs`;

export const redirected = (host: string, status: number): string =>
  `${host} returned a redirect (status ${status}), which is not followed; use the final URL`;

export const rateLimited = (host: string): string =>
  `${host} limits the number of messages (status 429); increase spec.groupSeconds if this happens often`;

export const rejected = (host: string, status: number): string =>
  `${host} rejected it (status ${status}); check the URL and the token`;

export const serverError = (host: string, status: number): string =>
  `${host} failed (status ${status}); check the service`;

export const notSent = (host: string): string => `it could not be sent to ${host}; see the operator's log`;
