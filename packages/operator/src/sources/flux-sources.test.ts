/** What an object of Flux's shape says of a Stack's program. */
import { describe, expect, test } from "bun:test";
import { manualClock, type Client } from "@pko/kube";

import { fluxSources, fluxView, type FluxObject } from "./flux-sources.ts";
import type { SourceView } from "./source-view.ts";

const ref = { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "Bucket", name: "b" };
const artifact = { url: "http://s/a.tgz", digest: "sha256:a", revision: "main@sha1:c0ffee" };

type Status = NonNullable<FluxObject["status"]>;

const ready = (status: string, more: object = {}): Pick<Status, "conditions"> => ({
  conditions: [{ type: "Ready", status, message: "no such branch", ...more }],
});

const bucket = (status: Status, spec: FluxObject["spec"] = {}): FluxObject => ({
  apiVersion: ref.apiVersion,
  kind: ref.kind,
  metadata: { name: "b", generation: 2 },
  spec,
  status,
});

const viewOf = (object: FluxObject | undefined, isOverdue = false): SourceView =>
  fluxView(object, { ref, dir: "", isOverdue });

describe("an artifact", () => {
  test("is known by its revision, and told from others by its digest", () => {
    expect(viewOf(bucket({ observedGeneration: 2, artifact, ...ready("True") }))).toEqual({
      kind: "ready",
      revision: "main@sha1:c0ffee",
      digest: "sha256:a",
      aliases: ["sha256:a"],
      spec: { flux: { url: "http://s/a.tgz", digest: "sha256:a" } },
    });
  });

  test("without a revision is known by its digest", () => {
    const { revision: _, ...nameless } = artifact;
    expect(viewOf(bucket({ artifact: nameless }))).toMatchObject({ kind: "ready", revision: "sha256:a" });
  });

  const used: readonly (readonly [string, FluxObject])[] = [
    ["of a fetch that failed later", bucket({ observedGeneration: 2, artifact, ...ready("False") })],
    ["while Flux looks again", bucket({ observedGeneration: 2, artifact, ...ready("Unknown") })],
    ["of a kind without conditions", bucket({ artifact })],
    ["of a kind that tells no generation", bucket({ artifact, ...ready("True") })],
    [
      "of a kind that tells the generation in its condition alone",
      bucket({ artifact, ...ready("True", { observedGeneration: 2 }) }),
    ],
    [
      "of the former spec, when Flux has failed with the present one",
      bucket({ observedGeneration: 1, artifact, ...ready("False", { observedGeneration: 2 }) }),
    ],
    [
      "of the former spec, when Flux is told to look no more",
      bucket({ observedGeneration: 1, artifact, ...ready("True", { observedGeneration: 1 }) }, { suspend: true }),
    ],
  ];
  test.each(used)("is used %s", (_, object) => {
    expect(viewOf(object)).toMatchObject({ kind: "ready", digest: "sha256:a" });
  });

  test("that Flux cannot follow comes with a warning", () => {
    expect(viewOf(bucket({ observedGeneration: 2, artifact, ...ready("False") }))).toMatchObject({
      warning: "Bucket b is not ready: no such branch (what was fetched before is used)",
    });
  });

  const awaited: readonly (readonly [string, FluxObject])[] = [
    ["has not seen the present spec", bucket({ observedGeneration: 1, artifact, ...ready("True") })],
    [
      "is looking at the present spec",
      bucket({ observedGeneration: 1, artifact, ...ready("Unknown", { observedGeneration: 2 }) }),
    ],
    ["speaks of the former spec in its condition", bucket({ artifact, ...ready("True", { observedGeneration: 1 }) })],
    ["has failed with the former spec", bucket({ observedGeneration: 1, artifact, ...ready("False") })],
  ];
  test.each(awaited)("is waited for while Flux %s, but not for ever", (_, object) => {
    expect(viewOf(object)).toEqual({ kind: "pending", what: "Flux, which looks at the new spec of Bucket b" });
    expect(viewOf(object, true)).toMatchObject({ kind: "ready", digest: "sha256:a" });
  });
});

const without: readonly (readonly [string, FluxObject | undefined, string])[] = [
  ["nothing is there", undefined, "there is no Bucket b"],
  ["Flux has failed", bucket({ ...ready("False") }), "Bucket b is not ready: no such branch"],
  ["Flux has not begun", bucket({ ...ready("Unknown") }), "Bucket b has no artifact yet"],
  ["it says nothing", bucket({}), "Bucket b has no artifact yet"],
  [
    "the artifact cannot be checked",
    bucket({ artifact: { url: "http://s/a.tgz" }, ...ready("True") }),
    "Bucket b has an artifact without an address or a digest",
  ],
];
test.each(without)("without an artifact that can be used, it is told why: %s", (_, object, message) => {
  expect(viewOf(object, true)).toMatchObject({ kind: "unavailable", message });
});

describe("a kind that the cluster does not serve", () => {
  function setting() {
    const asked: string[] = [];
    const discover: Client["discover"] = async ({ kind }) => {
      asked.push(kind);
      return [];
    };
    const clock = manualClock();
    const sources = fluxSources({ client: { discover } as Client, wake: () => undefined, clock });
    const look = (key: string, kind: string): SourceView =>
      sources.look(key, { namespace: "team", ref: { ...ref, kind }, dir: "" });
    const askedInAnHour = async (): Promise<string[]> => {
      asked.length = 0;
      for (let minute = 0; minute < 60; minute++) await clock.advance(60_000);
      return [...new Set(asked)];
    };
    return { sources, look, askedInAnHour };
  }

  test("is looked for as long as a Stack names it", async () => {
    const { look, askedInAnHour } = setting();
    look("team/web", "Bukket");
    look("team/apps", "Bukket");
    look("team/web", "Bucket");
    expect((await askedInAnHour()).toSorted()).toEqual(["Bucket", "Bukket"]);
  });

  test("is forgotten with the last Stack that named it", async () => {
    const { sources, look, askedInAnHour } = setting();
    look("team/web", "Bukket");
    look("team/web", "Bucket");
    expect(await askedInAnHour()).toEqual(["Bucket"]);
    sources.forget("team/web");
    expect(await askedInAnHour()).toEqual([]);
  });
});
