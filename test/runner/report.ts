/** The JUnit reports of `bun test` processes, combined. Pure. */

interface TimedTest {
  readonly name: string;
  readonly location: string;
  readonly seconds: number;
}

export interface Report {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Each with its location and message, repeated at the end of the run. */
  readonly failures: readonly string[];
  /** Each with its location and the reason. */
  readonly skips: readonly string[];
  readonly tests: readonly TimedTest[];
}

export const emptyReport: Report = { passed: 0, failed: 0, skipped: 0, failures: [], skips: [], tests: [] };

export function parseReport(xml: string): Report {
  const [head = ""] = /<testsuites[^>]*>/.exec(xml) ?? [];
  const [failed, skipped] = [numberIn(head, "failures"), numberIn(head, "skipped")];
  const tests = Array.from(xml.matchAll(/<testcase [^>]*>/g), ([tag]) => ({
    name: textIn(tag, "name"),
    location: locationIn(tag),
    seconds: numberIn(tag, "time"),
  }));
  const failures = Array.from(
    xml.matchAll(/(<testcase [^>]*[^/]>)\s*(<failure [^>]*>)/g),
    ([, test = "", failure = ""]) =>
      `${locationIn(test)} ${textIn(test, "name")}\n  ${textIn(failure, "message").trim().replaceAll("\n", "\n  ")}`,
  );
  const skips = Array.from(
    xml.matchAll(/(<testcase [^>]*[^/]>)\s*<skipped/g),
    ([, test = ""]) => `${locationIn(test)} ${textIn(test, "name")}`,
  );
  return { passed: numberIn(head, "tests") - failed - skipped, failed, skipped, failures, skips, tests };
}

const noResult = "the process ended without a result, or with an error outside of a test; see its output above";

/** A process that crashed, or that ran no test, counts as one failure. */
export const brokenReport = (job: string, why = noResult): Report => ({
  ...emptyReport,
  failed: 1,
  failures: [`${job}: ${why}`],
});

/** A job that cannot run here counts as one skipped test. */
export const skippedReport = (job: string, why: string): Report => ({
  ...emptyReport,
  skipped: 1,
  skips: [`${job}: ${why}`],
});

export const addReports = (a: Report, b: Report): Report => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
  failures: [...a.failures, ...b.failures],
  skips: [...a.skips, ...b.skips],
  tests: [...a.tests, ...b.tests],
});

export function slowest({ tests }: Report, count: number): string[] {
  const sorted = tests.toSorted((a, b) => b.seconds - a.seconds).slice(0, count);
  return sorted.map(({ seconds, location, name }) => `${seconds.toFixed(1).padStart(7)} s  ${location} ${name}`);
}

/** The seeds that tests printed (`packages/kube/testing/seed.ts`), with what each is for: `TEST_SEED=1: queue, slots`. */
export function seedLines(output: string): string[] {
  const bySeed = Map.groupBy(output.matchAll(/^ {4}(\S.*): (TEST_SEED=-?\d+)$/gm), ([, , seed = ""]) => seed);
  return Array.from(bySeed, ([seed, lines]) => `${seed}: ${[...new Set(lines.map(([, what]) => what))].join(", ")}`);
}

/** The line that CI parses. */
export function summary({ passed, failed, skipped }: Report): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

const locationIn = (tag: string): string => `${textIn(tag, "file")}:${textIn(tag, "line")}`;

const numberIn = (tag: string, attribute: string): number => Number(textIn(tag, attribute) || 0);

const entities: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&apos;": "'",
  "&#10;": "\n",
};

function textIn(tag: string, attribute: string): string {
  const [, escaped = ""] = new RegExp(` ${attribute}="([^"]*)"`).exec(tag) ?? [];
  const decoded = escaped.replaceAll(/&(?:lt|gt|quot|apos|#10);/g, (entity) => entities[entity] ?? entity);
  return decoded.replaceAll("&amp;", "&");
}
