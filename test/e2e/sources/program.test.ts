/** Program objects: every section of Pulumi YAML, and the reports for a Program that is broken or missing. */
import { expect, test } from "bun:test";

import type { Stack } from "@pko/api";
import { stringify } from "yaml";

import {
  agentLog,
  applyTo,
  at,
  fromSecret,
  hasReason,
  isReady,
  kubectl,
  listUpdates,
  readyMessage,
  newConfigMap,
  newProgram,
  newSecret,
  newStack,
  podUid,
  podWith,
  stackUntil,
  useScene,
} from "../harness.ts";
import { component, everySection, stash } from "../../programs/every-section.ts";

const slow = 600_000;
const canary = "canary-configuration-secret";

const scene = useScene("programs");

/** Pulumi writes a package's schema next to its folder, so the user of the pod needs write access there. */
const folder = "/tmp/greeting";

const sections = (note: number, extra: Parameters<typeof everySection>[0]["extra"] = {}): object =>
  everySection({ folder, note, extra });

test.concurrent(
  "a Program can use every section: packages, configuration, variables, functions, options, references, outputs",
  async () => {
    await applyTo(
      scene,
      newProgram("base", { outputs: { text: "from the base", secret: { "fn::secret": canary } } }),
      stack("base", {}),
      newConfigMap("greeting", { "PulumiPlugin.yaml": "runtime: yaml\n", "Pulumi.yaml": stringify(component) }),
      newSecret("inputs", { password: canary }),
    );
    await stackUntil(scene, "base", isReady);
    const locked = stash("precious", { protect: "${verbose}", retainOnDelete: true });
    await applyTo(scene, newProgram("sections", sections(1, { locked })), stack("sections", withInputs()));
    const deployed = await stackUntil(scene, "sections", isReady);
    expect(deployed.status?.outputs).toEqual({
      joined: "a-b",
      decoded: "b",
      json: '{"replicas":3,"size":7}',
      hidden: "[secret]",
      password: "[secret]",
      referenced: "from the base",
      secretly: "[secret]",
      component: "hello east",
      where: "sections/sections",
    });
    const pod = await podUid(scene, "sections");

    // A new generation keeps ignored changes and creates new resources.
    await applyTo(scene, newProgram("sections", sections(2, { locked, added: stash("new") })));
    const changed = await stackUntil(
      scene,
      "sections",
      ({ status }) => status?.lastUpdate?.lastSuccessfulCommit === "2",
    );
    // Only the two resources that contain the program's file are updated.
    expect(changed.status?.lastUpdate?.changes).toMatchObject({ create: 1, update: 2 });
    expect(await podUid(scene, "sections")).toBe(pod);

    // A protected resource is not deleted, and the error names it.
    await applyTo(scene, newProgram("sections", sections(2, { added: stash("new") })));
    const refused = await stackUntil(scene, "sections", ({ status }) => status?.lastUpdate?.state === "failed");
    expect(readyMessage(refused)).toMatch(/locked.*protect/s);
    await applyTo(scene, newProgram("sections", sections(2, { locked, added: stash("new") })));
    await stackUntil(scene, "sections", isReady);

    const sinks = [
      JSON.stringify(deployed),
      JSON.stringify(refused),
      await scene.operator.log(),
      await agentLog(scene, "sections"),
    ];
    expect(sinks.join("\n")).not.toContain(canary);
  },
  slow,
);

/** A Stack's own configuration of each kind, and the folder of the package in the pod. */
function withInputs(): object {
  return {
    config: { region: "east", size: 7 },
    secretsRef: { password: fromSecret("inputs", "password") },
    workspaceTemplate: podWith({
      mounts: [{ name: "greeting", mountPath: folder }],
      volumes: [{ name: "greeting", configMap: { name: "greeting" } }],
    }),
  };
}

test.concurrent(
  "a Stack waits for a missing Program, reports the broken line, and continues when a deleted Program is created again",
  async () => {
    await applyTo(scene, stack("late", {}));
    await stackUntil(scene, "late", isSourceUnavailable("there is no Program late"));
    await applyTo(scene, newProgram("late", { outputs: { text: { "fn::join": "not a list" } } }));
    const misused = await stackUntil(scene, "late", isFailedAt("1"));
    expect(readyMessage(misused)).toMatch(/Pulumi\.yaml:5.*fn::join must be a two-valued list/s);
    // The message quotes the line, because users cannot read the file.
    expect(readyMessage(misused)).toContain("fn::join: not a list");

    await applyTo(scene, newProgram("late", { resources: { kept: stash("${nothing.here}") } }));
    const unknown = await stackUntil(scene, "late", isFailedAt("2"));
    expect(readyMessage(unknown)).toMatch(/nothing.*Pulumi\.yaml/s);
    expect(readyMessage(unknown)).toContain("input: ${nothing.here}");

    await applyTo(scene, newProgram("late", { outputs: { text: "fixed" } }));
    const fixed = await stackUntil(scene, "late", isReady);
    expect(fixed.status).toMatchObject({ outputs: { text: "fixed" }, lastUpdate: { lastSuccessfulCommit: "3" } });
    const count = (await listUpdates(scene, "late")).length;

    await kubectl(["delete", "program", "late", ...at(scene)]);
    await stackUntil(scene, "late", isSourceUnavailable("there is no Program late"));
    await applyTo(scene, newProgram("late", { outputs: { text: "back" } }));
    await stackUntil(scene, "late", (each) => isReady(each) && each.status?.outputs?.["text"] === "back");
    expect(await listUpdates(scene, "late")).toHaveLength(count + 1);
  },
  slow,
);

function stack(name: string, spec: object): object {
  return newStack(name, { programRef: { name }, ...spec });
}

const isSourceUnavailable =
  (text: string) =>
  (each: Stack): boolean =>
    hasReason("SourceUnavailable")(each) && readyMessage(each).includes(text);

const isFailedAt =
  (generation: string) =>
  ({ status }: Stack): boolean =>
    status?.lastUpdate?.state === "failed" && status.lastUpdate.lastAttemptedCommit === generation;
