/** Invalid Stacks are reported by the API server where possible, otherwise by the operator in the Stalled condition. */
import { describeProblems, normalizeStack } from "@pko/api";
import type { Stack } from "@pko/api";
import { isInvalid, type ApiError } from "@pko/kube";
import type { ApiServer } from "@pko/testkit";
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { misshapenStacks, misspelledStacks, rejectedStacks } from "./bad-stacks.ts";
import { apiServerWithApi, testTimeoutMs, stacks } from "./install.ts";
import { stalledStacks } from "./stalled-stacks.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;

beforeAll(async () => {
  server = await apiServerWithApi();
}, testTimeoutMs);

/** The error of the API server; undefined if it accepts the object. */
async function admissionError(object: object): Promise<string | undefined> {
  const stack = object as Stack;
  const kind = { ...stacks, apiVersion: stack.apiVersion };
  try {
    await server.client.create(kind, stack, { dryRun: true, fieldValidation: "Strict" });
    return undefined;
  } catch (error) {
    if (isInvalid(error) || isBadRequest(error)) return error.explanation;
    throw error;
  }
}

const isBadRequest = (error: unknown): error is ApiError => (error as Partial<ApiError>).status === 400;

function normalizerError(object: object): string | undefined {
  const outcome = normalizeStack(object);
  return outcome.ok ? undefined : describeProblems(outcome.problems);
}

test("there are more than 120 cases with unique names", () => {
  const all = [...rejectedStacks, ...misshapenStacks, ...misspelledStacks, ...stalledStacks];
  expect(all.length).toBeGreaterThan(120);
  expect(new Set(all.map(({ what }) => what)).size).toBe(all.length);
});

describe("the API server and the operator reject with the same message", () => {
  for (const { what, stack, expected } of rejectedStacks) {
    test(what, async () => {
      expect(await admissionError(stack)).toContain(expected);
      expect(normalizerError(stack)).toContain(expected);
    });
  }
});

describe("the schema rejects", () => {
  for (const { what, stack, expected } of misshapenStacks) {
    test(what, async () => {
      expect(await admissionError(stack)).toContain(expected);
      expect(normalizerError(stack)).toBeDefined();
    });
  }
});

describe("strict validation rejects", () => {
  for (const { what, stack, expected } of misspelledStacks) {
    test(what, async () => expect(await admissionError(stack)).toContain(expected));
  }
});

describe("the API server accepts, and the operator rejects", () => {
  for (const { what, stack, expected } of stalledStacks) {
    test(what, async () => {
      expect(await admissionError(stack)).toBeUndefined();
      expect(normalizerError(stack)).toContain(expected);
    });
  }
});
