/** Which images of the operator are no longer needed, and failures before images are built. */
import { expect, test } from "bun:test";

import { buildImages, outdatedNames } from "./images.ts";

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

/** The test runner reports unhandled rejections. */
test("a tool that fails before the images need it is not an unhandled rejection", async () => {
  const programs = Promise.reject(new Error("no network"));
  const tools = Promise.reject(new Error("no space left"));
  const [ended] = await Promise.allSettled([programs, buildImages({ programs, tools })]);
  expect(ended.status).toBe("rejected");
});
