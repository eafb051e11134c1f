import { describe, expect, test } from "bun:test";

import { newTally, type Tally } from "./campaign.ts";
import { isPassed, summarize } from "./summary.ts";

const hit: Tally = { ...newTally(3, 1), hits: { before: 1, during: 0, after: 0, lost: 0, cut: 0 } };

const cases: readonly (readonly [string, readonly Tally[], boolean])[] = [
  ["with a hit and without a failure", [hit, newTally(3, 0)], true],
  ["without any phase", [], false],
  ["whose points were all missed", [{ ...newTally(3, 1), missed: ["before apply stacks web #1"] }], false],
  ["with a failure", [hit, { ...hit, failures: [{ kind: "lost", text: "" }] }], false],
  ["with a response that is 403", [hit, { ...hit, forbidden: 1 }], false],
];

describe("a campaign", () => {
  for (const [what, tallies, expected] of cases) {
    test(`${what} has ${expected ? "passed" : "failed"}`, () => expect(isPassed(tallies)).toBe(expected));
  }

  test("is summarized in one line", () => {
    const tallies: Tally[] = [hit, { ...hit, failures: [{ kind: "stuck", text: "" }], forbidden: 2 }];
    expect(summarize(tallies)).toBe(
      "2 points: 0 lost, 0 doubled, 1 stuck, 0 undestroyed, 0 unapproved, 0 other, 2 responses with 403",
    );
  });
});
