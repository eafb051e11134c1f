import { expect, test } from "bun:test";

import { isProxySignIn, type Answer } from "./proxy-answer.ts";

const answer = (status: number, contentType = "", type: Response["type"] = "basic"): Answer => ({
  type,
  status,
  headers: new Headers({ "content-type": contentType }),
});

const page = "text/html; charset=utf-8";

const answers: readonly (readonly [sentence: string, isSignIn: boolean, answer: Answer])[] = [
  ["a redirect", true, answer(0, "", "opaqueredirect")],
  ["a sign-in page", true, answer(200, page)],
  ["a sign-in page that is an error", true, answer(403, page)],
  ["the page of an ingress without a console", false, answer(502, page)],
  ["the page of an ingress without a route", false, answer(404, page)],
  ["data", false, answer(200, "application/json")],
  ["a stream", false, answer(200, "text/event-stream; charset=utf-8")],
  ["a permission that the API server denies", false, answer(403, "application/json")],
];

test.each(answers)("the user has to sign in at a proxy after %s: %p", (_, isSignIn, given) => {
  expect(isProxySignIn(given)).toBe(isSignIn);
});
