/** What is wrong is told: at once by the API server where it can, else by the normaliser, in a Stalled condition. */
import { describeProblems, normaliseStack } from "@pko/api";
import type { Stack } from "@pko/api";
import { isInvalid, type ApiError } from "@pko/kube";
import type { ApiServer } from "@pko/testkit";
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { misshapenStacks, misspeltStacks, refusedStacks } from "./bad-stacks.ts";
import { apiServerWithApi, patience, stacks } from "./install.ts";
import { stalledStacks } from "./stalled-stacks.ts";

setDefaultTimeout(patience);

let server: ApiServer;

beforeAll(async () => {
  server = await apiServerWithApi();
}, patience);

/** What the API server says against it, or undefined. */
async function refusalOf(object: object): Promise<string | undefined> {
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

function stallOf(object: object): string | undefined {
  const outcome = normaliseStack(object);
  return outcome.ok ? undefined : describeProblems(outcome.problems);
}

test("there are more than 120 of them", () => {
  const all = [...refusedStacks, ...misshapenStacks, ...misspeltStacks, ...stalledStacks];
  expect(all.length).toBeGreaterThan(120);
  expect(new Set(all.map(({ what }) => what)).size).toBe(all.length);
});

describe("refused at once, and stalled in the same words where the rule is not known", () => {
  for (const { what, stack, expected } of refusedStacks) {
    test(what, async () => {
      expect(await refusalOf(stack)).toContain(expected);
      expect(stallOf(stack)).toContain(expected);
    });
  }
});

describe("refused for its shape", () => {
  for (const { what, stack, expected } of misshapenStacks) {
    test(what, async () => {
      expect(await refusalOf(stack)).toContain(expected);
      expect(stallOf(stack)).toBeDefined();
    });
  }
});

describe("refused by strict validation", () => {
  for (const { what, stack, expected } of misspeltStacks) {
    test(what, async () => expect(await refusalOf(stack)).toContain(expected));
  }
});

describe("let in, as by the reference, and stalled", () => {
  for (const { what, stack, expected } of stalledStacks) {
    test(what, async () => {
      expect(await refusalOf(stack)).toBeUndefined();
      expect(stallOf(stack)).toContain(expected);
    });
  }
});
