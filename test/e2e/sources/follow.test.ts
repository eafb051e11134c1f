/** A Stack follows the branch of a repository. */
import { expect, test } from "bun:test";

import { applyTo, isAt, newStack, requestReconcile, stackUntil, useScene, yamlProject } from "../harness.ts";

const scene = useScene("follow");

test("a new commit is deployed", async () => {
  const repository = scene.git.create("site");
  const first = repository.commit(yamlProject("one"));
  await applyTo(scene, newStack("site", scene.git.source("site")));
  await stackUntil(scene, "site", isAt(first));

  const second = repository.commit(yamlProject("two"));
  await requestReconcile(scene, "site", "second");
  const { status } = await stackUntil(scene, "site", isAt(second));
  expect(status?.outputs).toEqual({ text: "two" });
}, 240_000);
