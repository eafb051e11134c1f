import { expect, test } from "bun:test";

import {
  dependencyCycle,
  invalidJson,
  missingKey,
  missingObject,
  missingSource,
  outputMissing,
  reportsDependencyCycle,
  reportsMissingInput,
  reportsMissingOutput,
  reportsMissingSource,
} from "./reports.ts";

const use = { key: "token", user: "the variable TOKEN" };
const reports: [string, string, string][] = [
  ["a missing Secret", missingObject("Secret cloud", use.user), "input"],
  ["a missing ConfigMap", missingObject("ConfigMap cloud", use.user), "input"],
  ["a missing key", missingKey("Secret cloud", use), "input"],
  ["a value that is not JSON", invalidJson("Secret cloud", use), "input"],
  ["a dependency cycle", dependencyCycle(["web", "api", "web"]), "cycle"],
  ["a missing output", outputMissing("base", "url", ["uri"]), "output"],
  ["a missing output of a Stack without outputs", outputMissing("base", "url", []), "output"],
  ["a missing source", missingSource("GitRepository base"), "source"],
  ["another problem", "spec.stack: is required", ""],
  ["a missing Stack", "there is no Stack base", ""],
];

test.each(reports)("recognizes %s", (_, message, kind) => {
  const text = `${message}; this is checked again automatically`;
  const found = [
    reportsMissingInput(text) ? "input" : "",
    reportsDependencyCycle(text) ? "cycle" : "",
    reportsMissingOutput(text) ? "output" : "",
    reportsMissingSource(text) ? "source" : "",
  ];
  expect(found.join("")).toBe(kind);
});
