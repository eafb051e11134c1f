/** Which images of the operator are no longer needed. */
import { expect, test } from "bun:test";

import { outdatedNames } from "./images.ts";

test("images of the operator are outdated an hour after they were built, others never", () => {
  const repository = "docker.io/pulumi/pulumi-kubernetes-operator";
  const stored = [
    { names: [`${repository}:old`, `${repository}:v3.0.0`], created: 1000 },
    { names: [`${repository}:new`], created: 5000 },
    { names: ["docker.io/pulumi/pulumi:latest"], created: 1000 },
    { names: null, created: 1000 },
  ];
  expect(outdatedNames(stored, { repository, now: 5000 })).toEqual([`${repository}:old`, `${repository}:v3.0.0`]);
});
