import { describe, expect, test } from "bun:test";
import type { Operation } from "@pko/rpc";
import { commandsFor } from "./operation.ts";
import { checkVersion, isAtLeast, parseVersion } from "./version.ts";

const target = { stack: "org/app/dev", settings: "/s.yaml", eventLog: "/e.log", planFile: "/plan.json" };
const applyPlan = { digest: "sha256:1", content: "" };
const commandLines = (operation: Operation) =>
  commandsFor(operation, target).map(({ args }) => args.slice(2).join(" "));
const common =
  "--stack=org/app/dev --config-file=/s.yaml --event-log=/e.log --suppress-progress --exec-agent=pulumi-kubernetes-operator";

test("previews and updates must satisfy the policy packs", () => {
  const packs = { ...target, policyPacks: ["/a", "/b"] };
  const kinds = ["preview", "up", "refresh", "destroy"] as const;
  const withPacks = kinds.filter((kind) =>
    commandsFor({ kind }, packs).some(({ args }) => args.join(" ").includes("--policy-pack=/a --policy-pack=/b")),
  );
  expect(withPacks).toEqual(["preview", "up"]);
});

describe("operations", () => {
  const cases: Record<string, { operation: Operation; commands: string[] }> = {
    "a preview": { operation: { kind: "preview" }, commands: [`preview ${common}`] },
    "an update of targets": {
      operation: {
        kind: "up",
        targets: ["urn:a", "-x"],
        targetDependents: true,
        message: "--yes; rm -rf /",
        parallel: 4,
      },
      commands: [
        `up --yes --skip-preview ${common} --message=--yes; rm -rf / --parallel=4 --target=urn:a --target=-x --target-dependents`,
      ],
    },
    "an update that refreshes": {
      operation: { kind: "up", refresh: true, expectNoChanges: true, replace: ["urn:b"], continueOnError: true },
      commands: [`up --yes --skip-preview ${common} --replace=urn:b --expect-no-changes --continue-on-error --refresh`],
    },
    "an update whose refresh must change nothing": {
      operation: { kind: "up", refresh: true, expectNoRefreshChanges: true },
      commands: [`refresh --yes --skip-preview ${common} --expect-no-changes`, `up --yes --skip-preview ${common}`],
    },
    "a refresh with the program": {
      operation: { kind: "refresh", runProgram: true, expectNoChanges: true },
      commands: [`refresh --yes --skip-preview ${common} --run-program --expect-no-changes`],
    },
    "a refresh that clears interrupted creates": {
      operation: { kind: "refresh", clearPendingCreates: true },
      commands: [`refresh --yes --skip-preview ${common} --clear-pending-creates`],
    },
    "a drift check": {
      operation: { kind: "refresh", previewOnly: true },
      commands: [`refresh --preview-only ${common} --expect-no-changes`],
    },
    "a destroy that removes the stack": {
      operation: { kind: "destroy", remove: true, continueOnError: true, refresh: true },
      commands: [`destroy --yes --skip-preview ${common} --refresh --continue-on-error --remove`],
    },
    "a preview that saves its plan": {
      operation: { kind: "preview", refresh: true, savePlan: true },
      commands: [`preview ${common} --refresh --save-plan=/plan.json`],
    },
    "an update with a plan, which previews": {
      operation: { kind: "up", refresh: true, continueOnError: true, applyPlan },
      commands: [`up --yes --plan=/plan.json ${common} --continue-on-error --refresh`],
    },
    "an update with a plan whose refresh must change nothing": {
      operation: { kind: "up", refresh: true, expectNoRefreshChanges: true, applyPlan },
      commands: [
        `refresh --yes --skip-preview ${common} --expect-no-changes`,
        `up --yes --plan=/plan.json ${common} --refresh`,
      ],
    },
    "the preview of a destroy, which removes no stack": {
      operation: { kind: "destroy", previewOnly: true, savePlan: true, remove: true, refresh: true },
      commands: [`destroy --preview-only ${common} --refresh`],
    },
    "a destroy with a plan": {
      operation: { kind: "destroy", remove: true, applyPlan },
      commands: [`destroy --preview-only ${common}`, `destroy --yes --skip-preview ${common} --remove`],
    },
    "a verbose preview": {
      operation: { kind: "preview", logLevel: 11 },
      commands: [`preview ${common} --logtostderr --verbose=10`],
    },
  };
  for (const [name, { operation, commands }] of Object.entries(cases)) {
    test(name, () => expect(commandLines(operation)).toEqual(commands));
  }
});

describe("versions", () => {
  const version = (text: string) => {
    const parsed = parseVersion(text);
    if (!parsed) throw new Error(`${text} is not a version`);
    return parsed;
  };

  test("are compared by number", () => {
    expect(isAtLeast(version("v3.202.0"), "3.202.0")).toBe(true);
    expect(isAtLeast(version("v3.99.9"), "3.202.0")).toBe(false);
    expect(isAtLeast(version("4.0.0"), "3.202.0")).toBe(true);
    expect(isAtLeast(version("v3.203.0-alpha.1+dirty"), "3.202.0")).toBe(true);
    expect(isAtLeast(version("v3.202.0-dev.0"), "3.202.0")).toBe(true);
    expect(isAtLeast(version("v3.201.9-rc.9"), "3.202.0")).toBe(false);
    expect(version("warning: a new version is there\nv3.202.0\n").text).toBe("3.202.0");
    expect(parseVersion("warning: x\n")).toBeUndefined();
  });

  test("the message about an old version names the required version and the remedy", () => {
    const check = checkVersion(version("v3.150.0"), { kind: "refresh", runProgram: true });
    expect(check.ok || check.failure.reason).toBe("versionTooLow");
    expect(check.ok || check.failure.message).toMatch(/3\.150\.0.*3\.160\.0.*pulumi\/pulumi:3\.160\.0-nonroot/);
    expect(checkVersion(version("v3.150.0"), { kind: "refresh" }).ok).toBe(true);
    expect(checkVersion(version("v3.104.2")).ok).toBe(false);
  });

  // The CLI's sources have the flag in the second release, and not in the first one.
  test.each<[before: string, from: string, operation: Operation]>([
    ["3.111.1", "3.112.0", { kind: "destroy", continueOnError: true }],
    ["3.113.3", "3.114.0", { kind: "up", continueOnError: true }],
    ["3.157.0", "3.158.0", { kind: "refresh", targetDependents: true }],
    ["3.157.0", "3.158.0", { kind: "up", targetDependents: true, expectNoRefreshChanges: true }],
    ["3.106.0", "3.107.0", { kind: "preview", savePlan: true }],
    ["3.106.0", "3.107.0", { kind: "destroy", previewOnly: true, savePlan: true }],
  ])("%s is too old for an operation that %s can run: %j", (before, from, operation) => {
    const check = checkVersion(version(before), operation);
    expect(check.ok || check.failure.message).toContain(`needs ${from} or later`);
    expect(checkVersion(version(from), operation).ok).toBe(true);
  });

  test("the feature with the highest minimum counts", () => {
    const check = checkVersion(version("3.105.0"), { kind: "up", continueOnError: true, runProgram: true });
    expect(check.ok || check.failure.message).toContain("runProgram before an update needs 3.169.0 or later");
  });

  test("flags of other operations do not need a newer version", () => {
    for (const operation of [
      { kind: "up", targetDependents: true },
      { kind: "destroy", previewOnly: true, targetDependents: true },
      { kind: "refresh", previewOnly: true, clearPendingCreates: true },
    ] satisfies Operation[]) {
      expect(checkVersion(version("3.105.0"), operation).ok).toBe(true);
    }
  });
});
