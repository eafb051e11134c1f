import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Operation } from "@pko/rpc";
import { temporaryFolder } from "../testing/folders.ts";
import { changedBindings, isStale, optionsOf, stateFacts } from "./bindings.ts";
import { folderContents } from "./contents.ts";
import { bindings } from "../testing/bindings.ts";
import { planChanged, planMismatch, planStale, planStopped } from "./messages.ts";

test("what changed is named", () => {
  expect(changedBindings(bindings, bindings)).toEqual([]);
  expect(changedBindings(bindings, { ...bindings, program: "x", image: "x", state: "x" })).toEqual([
    "program",
    "image",
  ]);
});

test("a plan is stale if the state has another time or another content", () => {
  const dated = { ...bindings, stateTime: "2026-01-01T00:00:00Z" };
  expect(isStale(dated, dated)).toBe(false);
  expect(isStale(dated, { ...dated, state: "x" })).toBe(true);
  expect(isStale(dated, { ...dated, stateTime: "2026-01-01T00:00:01Z" })).toBe(true);
  expect(isStale(bindings, dated)).toBe(true);
});

describe("the options of a plan", () => {
  test("are equal for a preview and its update, whatever does not affect the result", () => {
    const preview: Operation = {
      kind: "preview",
      savePlan: true,
      targets: ["b", "a"],
      message: "preview",
      logLevel: 3,
    };
    const applyPlan = { digest: "d", content: "" };
    const up: Operation = { kind: "up", applyPlan, targets: ["a", "b"], parallel: 3, continueOnError: true };
    expect(optionsOf(preview)).toEqual(optionsOf(up));
    const destroy: Operation = { kind: "destroy", applyPlan, remove: true };
    expect(optionsOf({ kind: "destroy", previewOnly: true, savePlan: true, remove: true })).toEqual(optionsOf(destroy));
  });

  test("differ with everything that affects the result", () => {
    const variants: readonly Operation[] = [
      { kind: "up" },
      { kind: "up", refresh: true },
      { kind: "up", targets: ["a"] },
      { kind: "up", targetDependents: true },
      { kind: "up", replace: ["a"] },
      { kind: "up", runProgram: true },
      { kind: "up", expectNoChanges: true },
      { kind: "destroy" },
      { kind: "destroy", remove: true },
      { kind: "destroy", refresh: true },
      { kind: "refresh" },
    ];
    expect(new Set(variants.map((each) => JSON.stringify(optionsOf(each)))).size).toBe(variants.length);
  });
});

test("the time and the key of a state are those of the deployment, not of a resource", () => {
  const manifest = { time: "2026-01-01T00:00:00Z", version: "v3" };
  const secrets_providers = { type: "passphrase", state: { salt: "v1:x" } };
  const resources = [{ inputs: { manifest: { time: "other" }, secrets_providers: { type: "other" } } }];
  const exported = (deployment: object): string => JSON.stringify({ version: 3, deployment }, undefined, 4);
  const facts = stateFacts(exported({ manifest, secrets_providers, resources }));
  expect(facts.stateTime).toBe("2026-01-01T00:00:00Z");
  expect(facts.stackKey).toContain("v1:x");
  expect(stateFacts(exported({ resources, manifest })).stateTime).toBe("2026-01-01T00:00:00Z");
  expect(stateFacts(exported({ resources }))).toEqual({});
});

test("the contents of a folder are those of its files, without what installations and runs write", async () => {
  const make = (text: string, extra: (folder: string) => void = () => undefined): Promise<string> => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "lib"));
    writeFileSync(join(folder, "Pulumi.yaml"), "name: demo\n");
    writeFileSync(join(folder, "lib/index.js"), text);
    extra(folder);
    return folderContents(folder);
  };
  const contents = await make("x");
  expect(await make("x")).toBe(contents);
  const generated = (folder: string): void => {
    mkdirSync(join(folder, "node_modules"));
    writeFileSync(join(folder, "node_modules/a.js"), "y");
    symlinkSync("/share/agent/settings.yaml", join(folder, "Pulumi.dev.yaml"));
  };
  expect(await make("x", generated)).toBe(contents);
  expect(await make("y")).not.toBe(contents);
  expect(await make("x", (folder) => writeFileSync(join(folder, "new.js"), ""))).not.toBe(contents);
  expect(await make("x", (folder) => chmodSync(join(folder, "lib/index.js"), 0o755))).not.toBe(contents);
  expect(await make("x", (folder) => symlinkSync("lib", join(folder, "link")))).not.toBe(contents);
});

test("messages name the plan, the reason and what was changed", () => {
  const [x, y] = [`sha256:${"a".repeat(64)}`, `sha256:${"b".repeat(64)}`];
  expect(planChanged(x, y, ["program", "cli"]).message).toBe(
    "the approval is for plan sha256:aaaaaaaaaaaa, the current plan is sha256:bbbbbbbbbbbb (changed: program, Pulumi CLI); nothing was changed",
  );
  const later = { ...bindings, stateTime: "2026-01-01T00:00:00Z" };
  expect(planStale(x, bindings, later).message).toBe(
    "plan sha256:aaaaaaaaaaaa is stale: the state changed at 2026-01-01T00:00:00Z; nothing was changed",
  );
  expect(planStale(x, later, later).message).toContain("the state was changed without an update");
  const urns = ["u1", "u2", "u2", "u3", "u4", "u5", "u6", "u7"];
  expect(planMismatch(x, urns).message).toContain(
    "no longer matches at u1, u2, u3, u4, u5 and 2 more; nothing was changed",
  );
  expect(planStopped(x, ["u1"], 1).message).toContain("stopped at u1 after 1 change; the rest needs a new approval");
});
