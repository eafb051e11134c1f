import { expect, test } from "bun:test";
import type { Stack } from "@pko/api";

import { isPullRequestPreview, pullRequestNumberOf } from "./pull-request-preview.ts";

const stackWith = (annotation: string | undefined, preview = true): Stack => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: {
    name: "web-pr-7",
    ...(annotation !== undefined && { annotations: { "pulumi.com/pull-request": annotation } }),
  },
  spec: { stack: "dev", preview },
});

test.each([
  ["7", 7],
  ["0", undefined],
  ["x", undefined],
  ["7 ", undefined],
  [undefined, undefined],
])("the annotation %p names the pull request %p", (text, number) => {
  expect(pullRequestNumberOf(stackWith(text))).toBe(number as number);
});

test("only a Stack that deploys nothing can be a preview", () => {
  expect([stackWith("7"), stackWith("7", false), stackWith(undefined)].map(isPullRequestPreview)).toEqual([
    true,
    false,
    false,
  ]);
});
