/** What the console says when it refuses a request: what happened, and what to do. */
import { consoleHeader, limits } from "../shared/contract.ts";

export const messages = {
  wrongHost: "This address is not an address of the console. Open it with the address that it was started for.",
  foreignOrigin: "The request comes from another site. Reload the page of the console.",
  headerMissing: `The header ${consoleHeader} is missing. Use the page of the console.`,
  methodNotAllowed: "The console does not support this method.",
  notFound: "The console does not serve this path.",
  notAllowed: "The console does not pass on this path, parameter or field to the Kubernetes API.",
  notSignedIn: "You are not signed in. Sign in, or reload the page.",
  addressUsed:
    "The address with this token has been used, or was not created by this process. Continue in the browser in which it was opened, or run kubectl pulumi ui again.",
  tokenRefused: "The API server does not accept this token. Check that it is complete and has not expired.",
  tokenInvalid: "This is not a token: it is empty, too long, or has characters that a token cannot have.",
  insecure:
    "A token can be entered only over HTTPS, or on localhost. Open the console through its HTTPS address, or with kubectl port-forward.",
  tooManyRequests: "There are too many requests from this session, or with unknown tokens. Wait a few seconds.",
  tooManyStreams: `This session has ${limits.streamsPerSession} open pages already. Close one of them.`,
  serverBusy: "The console serves too many pages. Try again later.",
  bodyTooLarge: `The request is larger than ${limits.bodyBytes / 1024} KiB.`,
  bodyTooSlow: "The request did not arrive in time.",
  notJson: "The body of the request is not a JSON object of the expected type.",
  badSubscriptions: "The parameter q is not a list of subscriptions.",
  internal: "The console failed. Its log has the reason.",
} as const;

export const unreachable = (code: string): string => `Cannot reach the API server (${code}).`;
