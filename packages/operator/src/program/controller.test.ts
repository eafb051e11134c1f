import { expect, test } from "bun:test";
import type { Program } from "@pko/api";

import { programStatus } from "./controller.ts";

const now = Date.UTC(2030, 0, 1, 12);
const artifact = { path: "p", url: "u", revision: "3", digest: "sha256:a", lastUpdateTime: "2030-01-01T12:00:00Z" };
const program = (generation: number): Program => ({
  apiVersion: "pulumi.com/v1",
  kind: "Program",
  metadata: { name: "p", generation },
  status: { observedGeneration: 3, artifact },
});

test("the status keeps the Go operator's archive only for the generation that it was made from", () => {
  expect(programStatus(program(3), now)).toMatchObject({ observedGeneration: 3, artifact });
  expect(programStatus(program(4), now)).not.toHaveProperty("artifact");
});

test("the status of a deleted Program does not change", () => {
  const { metadata, ...rest } = program(4);
  const deleted = { ...rest, metadata: { ...metadata, deletionTimestamp: "2030-01-01T12:00:00Z" } };
  expect(programStatus(deleted, now)).toEqual({ observedGeneration: 3, artifact });
});

test("a Program is Ready when its current generation was observed, so that kstatus and Flux can wait for it", () => {
  const { observedGeneration, conditions } = programStatus(program(4), now);
  expect(observedGeneration).toBe(4);
  expect(conditions).toMatchObject([{ type: "Ready", status: "True", reason: "Observed", observedGeneration: 4 }]);
});
