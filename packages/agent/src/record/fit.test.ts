import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { decodeContent, emptyContent, maxContentBytes, type RecordContent, type RunEvent } from "@pko/records";
import { fit, jsonChars, thin } from "./fit.ts";

let texts = 0;

/** Text that does not compress: another one for each call, the same in each run. */
const noise = (chars: number): string =>
  createHash("shake256", { outputLength: Math.ceil((chars * 3) / 4) })
    .update(`text ${++texts}`)
    .digest("base64");

const content = (events: readonly RunEvent[], resources = 0): RecordContent => ({
  ...emptyContent,
  events: events.map((event, index) => ({ seq: index + 1, time: "2026-01-01T00:00:00Z", event })),
  resources: Array.from({ length: resources }, () => ({ urn: noise(100), dependencies: [noise(100)] })),
});

const step = (op: string, phase: "started" | "finished" | "failed" = "finished"): RunEvent => ({
  kind: "resource",
  phase,
  op,
  urn: noise(200),
  resourceType: "t",
});
const update = (): RunEvent => ({
  ...(step("update") as Extract<RunEvent, { kind: "resource" }>),
  changes: [{ path: "a", kind: "update", old: noise(200), new: noise(200) }],
});
const diagnostic = (severity: "info" | "error"): RunEvent => ({ kind: "diagnostic", severity, message: noise(200) });
const times = (count: number, event: () => RunEvent): RunEvent[] => Array.from({ length: count }, event);

const fitted = async (all: RecordContent, maxBytes: number) => {
  const { encoded, omitted } = await fit(all, maxBytes);
  expect((encoded.length / 4) * 3).toBeLessThanOrEqual(maxBytes);
  const decoded = await decodeContent(encoded);
  if (!decoded) throw new Error("the record cannot be read");
  expect(decoded.omitted).toEqual(omitted);
  return decoded;
};

/** How much is left of what is dropped first, second… */
function leftOf({ events, resources }: RecordContent): number[] {
  const count = (matches: (event: RunEvent) => boolean) => events.filter(({ event }) => matches(event)).length;
  const resource = (op: string, phase: string) =>
    count((event) => event.kind === "resource" && event.op === op && event.phase === phase);
  return [
    count((event) => event.kind === "resource" && event.changes?.[0]?.old !== undefined),
    resource("same", "finished"),
    resource("update", "started"),
    count((event) => event.kind === "diagnostic" && event.severity === "info"),
    resources.filter(({ dependencies }) => dependencies).length,
    resources.length + resource("update", "finished"),
    resource("create", "failed") + count((event) => event.kind === "diagnostic" && event.severity === "error"),
  ];
}

describe("what does not fit is dropped", () => {
  const all = content(
    [
      ...times(40, update),
      ...times(40, () => step("same")),
      ...times(40, () => step("update", "started")),
      ...times(40, () => diagnostic("info")),
      ...times(40, () => step("create", "failed")),
      ...times(40, () => diagnostic("error")),
    ],
    40,
  );

  test("not at all if everything fits", async () => {
    expect(await fitted(all, 1024 * 1024)).toEqual(all);
  });

  for (const kib of [54, 48, 40, 34, 28, 20, 14, 6, 2]) {
    test(`in order, and counted, for ${kib} KiB`, async () => {
      const record = await fitted(all, kib * 1024);
      const [before, left] = [leftOf(all), leftOf(record)];
      const partial = left.findIndex((count) => count > 0);
      expect(left.slice(partial + 1)).toEqual(before.slice(partial + 1));
      const { events, resources, values, dependencies = 0 } = record.omitted;
      expect(record.events.length + events).toBe(240);
      expect(record.resources.length + resources).toBe(40);
      expect((left[0] ?? 0) * 2 + values).toBe(80);
      expect((left[4] ?? 0) + dependencies).toBe(40);
    });
  }

  test("only as much as necessary, oldest first", async () => {
    const printed = content(times(40, () => diagnostic("info")));
    const record = await fitted(printed, 4 * 1024);
    expect(record.events.at(-1)?.seq).toBe(40);
    expect(record.events[0]?.seq).toBe(record.omitted.events + 1);
    expect(record.omitted.events).toBeWithin(15, 30);
  });
});

/** As of a real run: each event says where its resource is. */
const creates = (count: number): RecordContent => {
  const resources = Array.from({ length: count }, (_, index) => ({
    urn: `urn:pulumi:dev::demo::kubernetes:core/v1:ConfigMap::config-${index}`,
    parent: "urn:pulumi:dev::demo::pulumi:pulumi:Stack::demo-dev",
    provider: "urn:pulumi:dev::demo::pulumi:providers:kubernetes::default",
    id: noise(24),
  }));
  const events = resources.map((resource) => ({ ...step("create"), ...resource }));
  return { ...content(events), resources };
};

describe("a record that is too large", () => {
  test("keeps what its events say about resources, also if these are dropped", async () => {
    const all = creates(4_000);
    const { events, resources, omitted } = await fitted(all, maxContentBytes);
    expect(events).toEqual(all.events.slice(0, events.length));
    expect(omitted.events + events.length).toBe(4_000);
    // Parents are the first, so the graph has no gaps.
    expect(resources).toEqual(all.resources.slice(0, resources.length));
  });

  test("keeps as many resources as events", async () => {
    const { events, resources } = await fitted(creates(4_000), maxContentBytes);
    expect(events.length).toBeGreaterThan(400);
    expect(Math.abs(events.length - resources.length)).toBeLessThanOrEqual(1);
  });

  test("keeps the few changes of a large stack", async () => {
    const large = creates(4_000);
    const few = { ...large, events: large.events.slice(-10) };
    const { events, resources } = await fitted(few, maxContentBytes);
    expect(events).toEqual(few.events);
    expect(resources.length).toBeGreaterThan(400);
  });

  test("is nearly full", async () => {
    const mixed = content([...times(2_000, update), ...times(9_000, () => diagnostic("info"))], 3_000);
    for (const maxBytes of [maxContentBytes, 200_000, 700_000]) {
      const { encoded } = await fit(mixed, maxBytes);
      expect((encoded.length / 4) * 3).toBeWithin(0.97 * maxBytes, maxBytes + 1);
    }
  });
});

test("a long run is thinned while it is read, so that it fits into memory", () => {
  const all = content([...times(100, () => diagnostic("info")), ...times(100, () => diagnostic("error"))]);
  const thinned = thin(all, 40_000);
  expect(jsonChars(thinned)).toBeWithin(39_000, 40_001);
  expect(thinned.omitted.events).toBe(200 - thinned.events.length);
  expect(leftOf(thinned)[6]).toBe(100);
  const again = thin(thinned, 20_000);
  expect(again.omitted.events).toBe(200 - again.events.length);
  expect(thin(all, 1_000_000)).toBe(all);
});
