/** Program objects: all that Pulumi YAML has to say, and what is told of one that is broken, missing or gone. */
import { afterAll, beforeAll, expect, test } from "bun:test";

import type { Stack } from "@pko/api";
import { stringify } from "yaml";

import {
  apply,
  clearNamespace,
  isReady,
  kubectl,
  newNamespace,
  onFileBackend,
  podOf,
  stackUntil,
  startOperator,
  updatesOf,
  type Operator,
  type Place,
} from "../harness.ts";
import { component, everySection, stash } from "../../programs/every-section.ts";

const slow = 600_000;
const canary = "canary-configuration-secret";

let operator: Operator;
let place: Place;

/** Pulumi writes a package's schema beside its folder, so the pod's user must be able to write there. */
const folder = "/tmp/greeting";

const sections = (note: number, extra: Parameters<typeof everySection>[0]["extra"] = {}): object =>
  everySection({ folder, note, extra });

beforeAll(async () => {
  const namespace = await newNamespace("programs");
  operator = await startOperator([namespace]);
  place = { client: operator.client, namespace };
}, slow);

afterAll(async () => {
  await clearNamespace(place.namespace);
  await operator.stop();
});

test.concurrent(
  "every section: packages, configuration of every type, variables, functions, options, references, outputs",
  async () => {
    await apply(
      program("base", { outputs: { text: "from the base", secret: { "fn::secret": canary } } }),
      stack("base", {}),
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "greeting", namespace: place.namespace },
        data: { "PulumiPlugin.yaml": "runtime: yaml\n", "Pulumi.yaml": stringify(component) },
      },
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "inputs", namespace: place.namespace },
        stringData: { password: canary },
      },
    );
    await stackUntil(place, "base", isReady);
    const locked = stash("precious", { protect: "${verbose}", retainOnDelete: true });
    await apply(program("sections", sections(1, { locked })), stack("sections", withInputs()));
    const deployed = await stackUntil(place, "sections", isReady);
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
    const pod = await podOf(place, "sections");

    // Another generation: what is ignored stays, what is new comes.
    await apply(program("sections", sections(2, { locked, added: stash("new") })));
    const changed = await stackUntil(
      place,
      "sections",
      ({ status }) => status?.lastUpdate?.lastSuccessfulCommit === "2",
    );
    // The two that hold the program's own file are updated, and no third.
    expect(changed.status?.lastUpdate?.changes).toMatchObject({ create: 1, update: 2 });
    expect(await podOf(place, "sections")).toBe(pod);

    // What is protected is not deleted, and the error names it.
    await apply(program("sections", sections(2, { added: stash("new") })));
    const refused = await stackUntil(place, "sections", ({ status }) => status?.lastUpdate?.state === "failed");
    expect(messageOf(refused)).toMatch(/locked.*protect/s);
    await apply(program("sections", sections(2, { locked, added: stash("new") })));
    await stackUntil(place, "sections", isReady);

    const sinks = [JSON.stringify(deployed), JSON.stringify(refused), await operator.log(), await agentLog("sections")];
    expect(sinks.join("\n")).not.toContain(canary);
  },
  slow,
);

/** A value of each kind of the Stack's own, and the package's folder in the pod. */
function withInputs(): object {
  const { podTemplate } = onFileBackend.workspaceTemplate.spec;
  const [pulumi] = podTemplate.spec.containers;
  const mount = { name: "greeting", mountPath: folder };
  const containers = [{ ...pulumi, volumeMounts: [...pulumi.volumeMounts, mount] }];
  const volumes = [...podTemplate.spec.volumes, { name: "greeting", configMap: { name: "greeting" } }];
  return {
    config: { region: "east", size: 7 },
    secretsRef: { password: { type: "Secret", secret: { name: "inputs", key: "password" } } },
    workspaceTemplate: { spec: { podTemplate: { spec: { ...podTemplate.spec, containers, volumes } } } },
  };
}

test.concurrent(
  "one that is missing is waited for; one that is broken is told with its line; one that is gone and comes back goes on",
  async () => {
    await apply(stack("late", {}));
    await stackUntil(place, "late", saysOfSource("there is no Program late"));
    await apply(program("late", { outputs: { text: { "fn::join": "not a list" } } }));
    const misused = await stackUntil(place, "late", isFailedAt("1"));
    expect(messageOf(misused)).toMatch(/Pulumi\.yaml:5.*fn::join must be a two-valued list/s);
    // The line itself: the file is nowhere to be looked at.
    expect(messageOf(misused)).toContain("fn::join: not a list");

    await apply(program("late", { resources: { kept: stash("${nothing.here}") } }));
    const unknown = await stackUntil(place, "late", isFailedAt("2"));
    expect(messageOf(unknown)).toMatch(/nothing.*Pulumi\.yaml/s);
    expect(messageOf(unknown)).toContain("input: ${nothing.here}");

    await apply(program("late", { outputs: { text: "mended" } }));
    const mended = await stackUntil(place, "late", isReady);
    expect(mended.status).toMatchObject({ outputs: { text: "mended" }, lastUpdate: { lastSuccessfulCommit: "3" } });
    const count = (await updatesOf(place, "late")).length;

    await kubectl(["delete", "program", "late", "-n", place.namespace]);
    await stackUntil(place, "late", saysOfSource("there is no Program late"));
    await apply(program("late", { outputs: { text: "back" } }));
    await stackUntil(place, "late", (each) => isReady(each) && each.status?.outputs?.["text"] === "back");
    expect(await updatesOf(place, "late")).toHaveLength(count + 1);
  },
  slow,
);

function program(name: string, sections: object): object {
  const metadata = { name, namespace: place.namespace };
  return { apiVersion: "pulumi.com/v1", kind: "Program", metadata, program: sections };
}

function stack(name: string, spec: object): object {
  const metadata = { name, namespace: place.namespace };
  const whole = { ...onFileBackend, stack: name, programRef: { name }, ...spec };
  return { apiVersion: "pulumi.com/v1", kind: "Stack", metadata, spec: whole };
}

const messageOf = ({ status }: Stack): string =>
  status?.conditions?.find(({ type }) => type === "Ready")?.message ?? "";

const saysOfSource =
  (words: string) =>
  (each: Stack): boolean =>
    Boolean(each.status?.conditions?.some(({ reason }) => reason === "SourceUnavailable")) &&
    messageOf(each).includes(words);

const isFailedAt =
  (generation: string) =>
  ({ status }: Stack): boolean =>
    status?.lastUpdate?.state === "failed" && status.lastUpdate.lastAttemptedCommit === generation;

async function agentLog(name: string): Promise<string> {
  return await kubectl(["logs", `${name}-workspace-0`, "-n", place.namespace, "-c", "pulumi"]);
}
