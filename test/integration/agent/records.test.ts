/** The feed and the record of a run with the real CLI: what they contain, and that they contain no secrets. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeContent, type RecordContent, type ResourceEvent } from "@pko/records";
import type { Source } from "@pko/rpc";
import type { WatchUpdate } from "@pko/rpc/watch";

import { Gate } from "./gate.ts";
import { program, stash, TestWorkspace } from "./harness.ts";

setDefaultTimeout(300_000);

const urn = (name: string): string => `urn:pulumi:dev::demo::pulumi:index:Stash::${name}`;
const stack = "urn:pulumi:dev::demo::pulumi:pulumi:Stack::demo-dev";
const provider = "urn:pulumi:dev::demo::pulumi:providers:pulumi::default";

async function recordOf(web: TestWorkspace, runId: string): Promise<RecordContent> {
  const content = await decodeContent((await web.record(runId)).content);
  if (!content) throw new Error("the record cannot be read");
  return content;
}

const steps = ({ events }: RecordContent): ResourceEvent[] =>
  events.flatMap(({ event }) => (event.kind === "resource" && event.phase === "finished" ? [event] : []));
const names = ({ resources }: RecordContent): string[] => resources.map((one) => one.urn.split("::").at(-1) ?? "");

describe("a run", () => {
  const web = new TestWorkspace();

  test("has the same events in the log, in the stream and in the record", async () => {
    await web.start();
    await web.prepare(program({ resources: { a: stash({ x: 1, list: [1, 2] }), b: stash("b") } }));
    await web.startRun("first", { kind: "up" });
    const streamed = (await web.updates("first")).flatMap((update) =>
      update.type === "event" ? [{ seq: update.seq, time: update.time, event: update.event }] : [],
    );
    const record = await recordOf(web, "first");
    expect(record.events).toEqual(streamed);
    expect(await web.feed("first", streamed.length)).toEqual(streamed);
    expect(record.omitted).toEqual({ events: 0, resources: 0, values: 0 });
    expect(record).not.toHaveProperty("partialResources");
    expect(steps(record)).toContainEqual({
      kind: "resource",
      phase: "finished",
      op: "create",
      urn: urn("b"),
      resourceType: "pulumi:index:Stash",
      parent: stack,
      provider,
      id: expect.any(String) as string,
      changes: [{ path: "input", kind: "add", new: '"b"' }],
      durationMs: expect.any(Number) as number,
    });
  });

  test("has versions and digests of its inputs, which change with them", async () => {
    const first = await web.record("first");
    expect(first.versions).toEqual({ agent: "dev", pulumi: expect.stringMatching(/^\d+\.\d+/) as string });
    expect(Object.keys(first.inputs).toSorted()).toEqual(["configuration", "environment", "program"]);
    await web.prepare(program({ resources: { a: stash({ x: 2, list: [1] }), c: stash("c") } }));
    await web.run("second", { kind: "up" });
    const { inputs } = await web.record("second");
    expect(Object.keys(inputs).filter((name) => inputs[name] !== first.inputs[name])).toEqual(["program"]);
  });

  test("has the changed properties, and the resources that exist afterwards", async () => {
    const record = await recordOf(web, "second");
    expect(steps(record).find(({ op }) => op === "update")?.changes).toEqual([
      { path: "input.list[1]", kind: "delete", old: "2" },
      { path: "input.x", kind: "update", old: "1", new: "2" },
    ]);
    expect(names(record).toSorted()).toEqual(["a", "c", "default", "demo-dev"]);
    expect(record.resources).toContainEqual({
      urn: urn("a"),
      parent: stack,
      provider,
      id: expect.any(String) as string,
    });
    expect(steps(record).filter(({ op, durationMs }) => op === "same" && durationMs !== undefined)).toEqual([]);
  });

  test("that only previews has the resources that exist", async () => {
    await web.prepare(program({ resources: { d: stash("d") } }));
    await web.run("preview", { kind: "preview" });
    const record = await recordOf(web, "preview");
    expect(names(record).toSorted()).toEqual(["a", "c", "default", "demo-dev"]);
    expect(steps(record).map(({ op }) => op)).toEqual(expect.arrayContaining(["create", "delete"]) as string[]);
  });

  test("that replaces a resource has the reason", async () => {
    await web.prepare(program({ resources: { c: stash("c") } }));
    await web.run("replace", { kind: "up", replace: [urn("c")] });
    const record = await recordOf(web, "replace");
    expect(steps(record).find(({ op }) => op === "replace")).toMatchObject({ urn: urn("c"), replaceKeys: ["id"] });
    expect(names(record).toSorted()).toEqual(["c", "default", "demo-dev"]);
  });

  test("with targets may not have visited every resource", async () => {
    await web.run("targeted", { kind: "up", targets: [urn("c")] });
    expect(await recordOf(web, "targeted")).toMatchObject({ partialResources: true });
  });

  test("that failed has the resources of the state, with their dependencies", async () => {
    await web.prepare(program({ resources: { a: stash("a"), b: stash("${a.output}") } }));
    await web.run("before", { kind: "up" });
    await web.prepare(program({ resources: { a: stash("${nope.x}") } }));
    await web.run("failed", { kind: "up" });
    const { resources, ...failed } = await recordOf(web, "failed");
    expect(failed).not.toHaveProperty("partialResources");
    expect(resources.find((resource) => resource.urn === urn("b"))).toEqual({
      urn: urn("b"),
      parent: stack,
      provider,
      id: expect.any(String) as string,
      dependencies: [urn("a")],
    });
    expect(JSON.stringify((await recordOf(web, "failed")).events)).toContain("nope");
  });

  test("that destroys everything leaves no resources", async () => {
    await web.run("destroy", { kind: "destroy" });
    const record = await recordOf(web, "destroy");
    expect(record.resources).toEqual([]);
    expect(record).not.toHaveProperty("partialResources");
  });

  test("that does not exist has no record", async () => {
    const unknown = await web.agent.record({ runId: "nope" });
    expect(unknown).toMatchObject({ ok: false, error: { code: "notFound" } });
  });
});

/** Everything that the run leaves for others to read. */
async function traces(web: TestWorkspace, runId: string): Promise<Record<string, string>> {
  const updates: WatchUpdate[] = await web.updates(runId);
  return {
    stream: JSON.stringify(updates),
    log: web.log,
    record: JSON.stringify([await recordOf(web, runId), await web.record(runId)]),
    disk: readFileSync(join(web.share, "runs", runId, "events.ndjson"), "utf8"),
  };
}

function expectNoCanary(found: Record<string, string>): void {
  for (const [where, text] of Object.entries(found)) {
    const at = text.indexOf("canary");
    expect({ where, leaked: at < 0 ? undefined : text.slice(Math.max(0, at - 80), at + 80) }).toEqual({
      where,
      leaked: undefined,
    });
  }
}

describe("secrets are in neither the feed nor the record", () => {
  /** Longer than a value and than a line, and not known to the CLI. */
  const long = `canary-${"0123456789abcdef".repeat(150)}`;
  const lines = "canary first line\ncanary second line";
  const env = { CLOUD_CREDENTIALS: long, SIGNING_PRIVATE_KEY: lines };
  const config = [
    { key: "token", secret: true, value: { from: "value" as const, value: "canary-config" } },
    { key: "url", value: { from: "value" as const, value: "https://user:canary-config@host" } },
  ];
  const source = (size: number): Source =>
    program({
      config: { token: { type: "string" }, url: { type: "string" } },
      resources: {
        config: stash({ size, token: "${token}", url: "${url}", inner: { "fn::secret": `canary-property-${size}` } }),
        // The program lost the information that these are secret.
        literal: stash({ size, text: `connect with canary-config`, dbPassword: `canary-undeclared-${size}` }),
        nested: stash({ credentials: { pass: `canary-nested-${size}` }, url: `postgres://shop:canary-url-${size}@db` }),
        variables: stash([{ name: "DB_PASSWORD", value: `canary-variable-${size}` }]),
        long: stash({ size, text: `${"x".repeat(300)}${long}`, lines: `key:\n${lines}\n${size}` }),
        derived: stash("${config.output}"),
      },
      outputs: { secret: { "fn::secret": `canary-output-${size}` }, token: "${token}", plain: "${size}" },
      variables: { size },
    });
  const web = new TestWorkspace({ env });

  test("of a run that creates resources", async () => {
    await web.start();
    await web.prepare(source(1), { config });
    expect(await web.run("create", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expectNoCanary(await traces(web, "create"));
  });

  test("of a preview and an update", async () => {
    await web.prepare(source(2), { config });
    expect(await web.run("preview", { kind: "preview" })).toMatchObject({ outcome: "succeeded" });
    expect(await web.run("update", { kind: "up", refresh: true })).toMatchObject({ outcome: "succeeded" });
    for (const run of ["preview", "update"]) expectNoCanary(await traces(web, run));
    const changes = steps(await recordOf(web, "update")).flatMap((step) => step.changes ?? []);
    expect(changes.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        "input.size",
        "input.dbPassword",
        "input.credentials.pass",
        "input.url",
        "input[0].value",
      ]) as string[],
    );
    expect(changes).toContainEqual({
      path: "input.dbPassword",
      kind: "update",
      old: '"[secret]"',
      new: '"[secret]"',
    });
  });

  test("of a run that fails with a message of several lines", async () => {
    // Pulumi YAML quotes the line with the error.
    const text = `name: demo\nruntime: yaml\noutputs:\n  a: "\${nope.x} ${long}"\n  b: "\${nope.y} canary first line"\n`;
    await web.prepare({ kind: "files", files: { "Pulumi.yaml": text } }, { config });
    expect(await web.run("failure", { kind: "up" })).toMatchObject({ outcome: "failed" });
    const found = await traces(web, "failure");
    expect(found["record"]).toContain("could not be found");
    expectNoCanary(found);
  });

  test("of a run that deletes resources", async () => {
    await web.prepare(source(2), { config });
    expect(await web.run("destroy", { kind: "destroy" })).toMatchObject({ outcome: "succeeded" });
    expectNoCanary(await traces(web, "destroy"));
  });
});

describe("an agent that restarts", () => {
  const item = { key: "token", secret: true, value: { from: "value" as const, value: "canary-config" } };
  const waiting = program({
    variables: { slow: { "fn::readFile": "./gate" } },
    resources: { first: stash("quick"), second: stash({ slow: "${slow}", text: "canary-config" }) },
  });
  const isFirstDone = (update: WatchUpdate): boolean =>
    update.type === "event" &&
    update.event.kind === "resource" &&
    update.event.phase === "finished" &&
    update.event.urn === urn("first");

  test("continues the feed without gaps and duplicates, and keeps what the record needs", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(waiting, { config: [item] });
    const gate = new Gate(web);
    await web.startRun("up", { kind: "up" });
    expect(await web.agent.record({ runId: "up" })).toMatchObject({ ok: false, error: { code: "unprepared" } });
    await web.until("up", isFirstDone);
    await web.kill("SIGKILL");
    await web.start();
    await gate.open("survived");
    expect(await web.result("up")).toMatchObject({ outcome: "succeeded" });
    const record = await recordOf(web, "up");
    const numbers = record.events.map(({ seq }) => seq);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    expect(await web.feed("up", numbers.length)).toEqual(record.events);
    expect(names(record).toSorted()).toEqual(["default", "demo-dev", "first", "second"]);
    expect(Object.keys((await web.record("up")).inputs)).toContain("program");
    // It no longer knows the secrets that values may contain.
    const second = steps(record).find((step) => step.urn === urn("second"));
    expect(second?.changes).toEqual([{ path: "input", kind: "add" }]);
    expectNoCanary(await traces(web, "up"));
  });
});
