import { expect, test } from "bun:test";

import { set, view } from "../testing/views.ts";
import type { Performer } from "./owned.ts";
import { restoreStatefulSet } from "./statefulset.ts";

/** An API server on which nothing exists. */
const empty = { client: { find: async () => undefined } } as unknown as Performer;

test("restoring a StatefulSet that was deleted waits for the store instead of repeating at once", async () => {
  const observed = view(set());
  const { inputs, statefulSet } = observed;
  if (!inputs?.pod.ok || !statefulSet) throw new Error("the view has no StatefulSet");
  const step = { kind: "restoreStatefulSet", uid: statefulSet.uid, objects: inputs.pod.objects } as const;
  const { signal } = new AbortController();
  expect(await restoreStatefulSet(empty, step, { view: observed, signal })).toEqual({ kind: "stale" });
});
