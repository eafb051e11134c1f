import { expect, test } from "bun:test";

import { ApiError, ConnectionError, isNamespaceTerminating, type StatusCause } from "./errors.ts";

const refused = (status: number, message: string, causes: StatusCause[] = []) =>
  new ApiError("POST secrets", { status, reason: "Forbidden", message, causes });

const words = "unable to create new content in namespace web because it is being terminated";
const cause = { reason: "NamespaceTerminating", field: "metadata.namespace" };

test.each([
  ["the cause says so", refused(403, "no", [cause]), true],
  ["one of several causes says so", refused(403, "no", [{ reason: "Quota" }, cause]), true],
  ["only the words say so", refused(403, words), true],
  ["the namespace is not there at all", refused(404, words, [cause]), false],
  ["a quota is full", refused(403, "exceeded quota"), false],
  ["the words are of something else that ends", refused(403, "the instance is being terminated"), false],
  ["nobody answered", new ConnectionError("POST secrets", { code: "ECONNRESET" }), false],
])("a namespace is known to be terminating: %s", (_, error, expected) => {
  expect(isNamespaceTerminating(error)).toBe(expected);
});
