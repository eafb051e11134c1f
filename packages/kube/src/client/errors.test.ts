import { expect, test } from "bun:test";

import { ApiError, ConnectionError, isNamespaceTerminating, type StatusCause } from "./errors.ts";

const rejected = (status: number, text: string, causes: StatusCause[] = []) =>
  new ApiError("POST secrets", { status, reason: "Forbidden", message: text, causes });

const message = "unable to create new content in namespace web because it is being terminated";
const cause = { reason: "NamespaceTerminating", field: "metadata.namespace" };

test.each([
  ["the cause matches", rejected(403, "no", [cause]), true],
  ["one of several causes matches", rejected(403, "no", [{ reason: "Quota" }, cause]), true],
  ["only the message matches", rejected(403, message), true],
  ["the namespace does not exist", rejected(404, message, [cause]), false],
  ["a quota is full", rejected(403, "exceeded quota"), false],
  ["the message is about something else that is terminated", rejected(403, "the instance is being terminated"), false],
  ["there is no response", new ConnectionError("POST secrets", { code: "ECONNRESET" }), false],
])("isNamespaceTerminating: %s", (_, error, expected) => {
  expect(isNamespaceTerminating(error)).toBe(expected);
});
