import { expect, test } from "bun:test";
import type { Occupied } from "@pko/kube";

import { conflictMessage, conflictPauseMs } from "./ownership.ts";

const stack = { kind: "Stack", name: "dev" };
const occupant = (kind: string) => ({ kind, namespace: "shop", name: "dev-workspace" });
const foreign = (kind: string): Occupied => ({ kind: "foreign", occupant: occupant(kind) });
const former: Occupied = {
  kind: "former",
  occupant: { ...occupant("Service"), owner: { kind: "Workspace", name: "dev" } },
};

test("a foreign object is named with its owner, and so is the fix", () => {
  expect(conflictMessage([foreign("StatefulSet")], stack)).toBe(
    "StatefulSet shop/dev-workspace (without an owner) already exists and was not created for Stack dev, so nothing was " +
      "changed. Delete or rename it, or use another name for the Stack; this is checked again automatically.",
  );
  const owned: Occupied = {
    kind: "foreign",
    occupant: { ...occupant("Secret"), owner: { kind: "Certificate", name: "tls" } },
  };
  expect(conflictMessage([owned], stack)).toContain("Secret shop/dev-workspace (owned by Certificate tls)");
});

test("all foreign objects are named together, and those that are garbage-collected are not", () => {
  const message = conflictMessage([former, foreign("StatefulSet"), foreign("Secret")], stack);
  expect(message).toStartWith("StatefulSet shop/dev-workspace (without an owner) and Secret shop/dev-workspace");
  expect(message).toContain("Delete or rename them");
  expect(message).not.toContain("Service");
});

test("objects of an earlier owner are left to the garbage collector", () => {
  expect(conflictMessage([former], stack)).toStartWith(
    "Service shop/dev-workspace belonged to an earlier Workspace dev that is deleted; waiting for the garbage collector",
  );
});

test("names are read again every 15 seconds at first, and every two minutes in the end", () => {
  const [second, minute] = [1000, 60_000];
  const pause = (seconds: number): number => conflictPauseMs([foreign("Secret")], seconds * second);
  expect(pause(0)).toBe(15 * second);
  expect(pause(120)).toBe(30 * second);
  expect(pause(86_400)).toBe(2 * minute);
  expect(conflictPauseMs([former], 86_400_000)).toBe(5 * second);
});
