/** What can happen to a request, with the response to the sender. Each is counted. */
import type { Registry } from "@pko/kube";

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** The texts are for people who read the list of deliveries of their forge. They reveal nothing about Stacks. */
export const answers = {
  accepted: { status: 202, text: "the repository will be polled" },
  ping: { status: 200, text: "the webhook works" },
  otherEvent: { status: 202, text: "ignored: the event changes no branch, tag or pull request" },
  filtered: { status: 202, text: "ignored: the Receiver does not accept this repository or ref" },
  notFollowed: { status: 202, text: "ignored: no Stack in the Receiver's namespace follows this repository and ref" },
  unknownPath: { status: 404, text: "there is no Receiver with this path" },
  notPost: { status: 405, text: "send a POST request" },
  badSignature: { status: 401, text: "the signature or token is missing or wrong; check the secret of the webhook" },
  malformed: { status: 400, text: "the body is not an event of this type of Receiver" },
  tooLarge: { status: 413, text: "the body is larger than 1 MiB" },
  tooSlow: { status: 408, text: "the body did not arrive in time (10 seconds)" },
  rateLimited: { status: 429, text: "too many requests" },
  busy: { status: 503, text: "too many requests at the same time" },
  notReady: { status: 503, text: "the Receiver is not ready; see its status" },
  noLeader: { status: 503, text: "no replica of the operator is leading at the moment" },
  failed: { status: 500, text: "the operator failed to handle the request; see its log" },
  forwarded: { status: 202, text: "forwarded" },
} as const satisfies Readonly<Record<string, Answer>>;

export type HookResult = keyof typeof answers;

/** Those that mean that the sender, or the Receiver, has to be corrected. */
export const rejections: ReadonlySet<HookResult> = new Set<HookResult>([
  "badSignature",
  "malformed",
  "tooLarge",
  "tooSlow",
  "rateLimited",
  "busy",
]);

/** Those before the end of the body. The server would read the rest of it, however long, to reuse the connection. */
const unread: ReadonlySet<HookResult> = new Set<HookResult>([
  "unknownPath",
  "notPost",
  "rateLimited",
  "busy",
  "tooLarge",
  "tooSlow",
]);

export function responseTo(result: HookResult): Response {
  const { status, text } = answers[result];
  const retry = status === 429 || status === 503 ? { "retry-after": "10" } : {};
  const close = unread.has(result) ? { connection: "close" } : {};
  return new Response(`${text}\n`, {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", ...retry, ...close },
  });
}

export function countResults(metrics: Registry): (result: HookResult) => void {
  const requests = metrics.counter({
    name: "webhook_requests_total",
    help: "Requests to the webhook endpoint by result: accepted, forwarded, or why they were ignored or rejected.",
    labels: ["result"],
  });
  return (result) => requests.increment({ result });
}
