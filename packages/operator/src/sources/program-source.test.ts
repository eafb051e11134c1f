import { expect, test } from "bun:test";

import { programView } from "./program-source.ts";

test("the digest of the Go operator's archive is an alias of the same generation", () => {
  const artifact = { path: "p", url: "u", revision: "3", digest: "sha256:a", lastUpdateTime: "2030-01-01T12:00:00Z" };
  const program = (generation: number) => ({
    apiVersion: "pulumi.com/v1",
    kind: "Program",
    metadata: { name: "p", generation },
    status: { observedGeneration: 3, artifact },
  });
  expect(programView(program(3), "p")).toMatchObject({ revision: "3", aliases: ["sha256:a"] });
  expect(programView(program(4), "p")).toMatchObject({ revision: "4", aliases: [] });
});
