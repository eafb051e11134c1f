/** What an object with a Flux artifact means for the source of a Stack. */
import { Readable } from "node:stream";

import { describe, expect, test } from "bun:test";
import { missingSource } from "@pko/api";
import { ApiError, manualClock, type Client } from "@pko/kube";

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
  test("is named by its revision, and identified by its digest", () => {
    expect(viewOf(bucket({ observedGeneration: 2, artifact, ...ready("True") }))).toEqual({
      kind: "ready",
      revision: "main@sha1:c0ffee",
      digest: "sha256:a",
      aliases: ["sha256:a"],
      spec: { flux: { url: "http://s/a.tgz", digest: "sha256:a" } },
    });
  });

  test("without a revision is named by its digest", () => {
    const { revision: _, ...nameless } = artifact;
    expect(viewOf(bucket({ artifact: nameless }))).toMatchObject({ kind: "ready", revision: "sha256:a" });
  });

  const used: readonly (readonly [string, FluxObject])[] = [
    ["of a fetch that failed later", bucket({ observedGeneration: 2, artifact, ...ready("False") })],
    ["while Flux fetches again", bucket({ observedGeneration: 2, artifact, ...ready("Unknown") })],
    ["of a kind without conditions", bucket({ artifact })],
    ["of a kind that reports no generation", bucket({ artifact, ...ready("True") })],
    [
      "of a kind that reports the generation in its condition only",
      bucket({ artifact, ...ready("True", { observedGeneration: 2 }) }),
    ],
    [
      "of the former spec, when Flux has failed with the current one",
      bucket({ observedGeneration: 1, artifact, ...ready("False", { observedGeneration: 2 }) }),
    ],
    [
      "of the former spec, when the object is suspended",
      bucket({ observedGeneration: 1, artifact, ...ready("True", { observedGeneration: 1 }) }, { suspend: true }),
    ],
  ];
  test.each(used)("is used %s", (_, object) => {
    expect(viewOf(object)).toMatchObject({ kind: "ready", digest: "sha256:a" });
  });

  test("that Flux can no longer update has a warning", () => {
    expect(viewOf(bucket({ observedGeneration: 2, artifact, ...ready("False") }))).toMatchObject({
      warning: "Bucket b is not ready: no such branch (the last artifact is used)",
    });
  });

  const awaited: readonly (readonly [string, FluxObject])[] = [
    ["has not observed the current spec", bucket({ observedGeneration: 1, artifact, ...ready("True") })],
    [
      "is processing the current spec",
      bucket({ observedGeneration: 1, artifact, ...ready("Unknown", { observedGeneration: 2 }) }),
    ],
    ["reports the former spec in its condition", bucket({ artifact, ...ready("True", { observedGeneration: 1 }) })],
    ["has failed with the former spec", bucket({ observedGeneration: 1, artifact, ...ready("False") })],
  ];
  test.each(awaited)("is pending while Flux %s, but not forever", (_, object) => {
    expect(viewOf(object)).toEqual({ kind: "pending", what: "Flux to process the new spec of Bucket b" });
    expect(viewOf(object, true)).toMatchObject({ kind: "ready", digest: "sha256:a" });
  });
});

const without: readonly (readonly [string, FluxObject | undefined, string])[] = [
  ["the object does not exist", undefined, "there is no Bucket b"],
  ["Flux has failed", bucket({ ...ready("False") }), "Bucket b is not ready: no such branch"],
  ["Flux has not started", bucket({ ...ready("Unknown") }), "Bucket b has no artifact yet"],
  ["its status is empty", bucket({}), "Bucket b has no artifact yet"],
  [
    "the artifact cannot be checked",
    bucket({ artifact: { url: "http://s/a.tgz" }, ...ready("True") }),
    "Bucket b has an artifact without an address or a digest",
  ],
];
test.each(without)("an object without a usable artifact is unavailable, with the reason: %s", (_, object, message) => {
  expect(viewOf(object, true)).toMatchObject({ kind: "unavailable", message });
});

describe("a kind that the cluster does not serve", () => {
  function setting() {
    const requested: string[] = [];
    const discover: Client["discover"] = async ({ kind }) => {
      requested.push(kind);
      return [];
    };
    const clock = manualClock();
    const woken: string[] = [];
    const sources = fluxSources({ client: { discover } as Client, wake: (key) => woken.push(key), clock });
    const follow = (key: string, kind: string): void => {
      const wanted = { namespace: "team", ref: { ...ref, kind }, dir: "" };
      sources.follow(key, wanted, sources.latest(wanted));
    };
    const requestedInAnHour = async (): Promise<string[]> => {
      requested.length = 0;
      for (let minute = 0; minute < 60; minute++) await clock.advance(60_000);
      return [...new Set(requested)];
    };
    return { sources, woken, follow, requested, requestedInAnHour };
  }

  test("is not checked because a Stack reads the latest state", async () => {
    const { sources, requestedInAnHour } = setting();
    const wanted = { namespace: "team", ref, dir: "" };
    expect(sources.latest(wanted)).toEqual({ kind: "pending", what: "the first read of Bucket b" });
    expect(await requestedInAnHour()).toEqual([]);
  });

  test("is reported to a Stack that read the state before it was known", async () => {
    const { sources, woken, requestedInAnHour } = setting();
    const wanted = { namespace: "team", ref, dir: "" };
    const seen = sources.latest(wanted);
    sources.follow("team/web", wanted, seen);
    await requestedInAnHour();
    sources.follow("team/apps", wanted, seen);
    expect(woken).toEqual(["team/web", "team/apps"]);
  });

  test("is checked for as long as a Stack references it", async () => {
    const { follow, requestedInAnHour } = setting();
    follow("team/web", "Bukket");
    follow("team/apps", "Bukket");
    follow("team/web", "Bucket");
    expect((await requestedInAnHour()).toSorted()).toEqual(["Bucket", "Bukket"]);
  });

  test("is checked less and less often, up to every five minutes", async () => {
    const { follow, requested, requestedInAnHour } = setting();
    follow("team/web", "Bukket");
    await requestedInAnHour();
    expect(requested.length).toBeWithin(15, 30);
    await requestedInAnHour();
    expect(requested.length).toBeWithin(10, 15);
  });

  test("is forgotten with the last Stack that referenced it", async () => {
    const { sources, follow, requestedInAnHour } = setting();
    follow("team/web", "Bukket");
    follow("team/web", "Bucket");
    expect(await requestedInAnHour()).toEqual(["Bucket"]);
    sources.forget("team/web");
    expect(await requestedInAnHour()).toEqual([]);
  });
});

test("a kind is checked by its first page, however many objects it has", async () => {
  /** After the first. */
  let pages = 0;
  const wanted = { namespace: "team", ref: { apiVersion: "example.com/v1", kind: "Artifact", name: "site" }, dir: "" };
  const synced = Promise.withResolvers<void>();
  const client = {
    discover: () => Promise.resolve([{ ...wanted.ref, plural: "artifacts", namespaced: true }]),
    async *pages(_: unknown, { pageSize }: { readonly pageSize?: number }) {
      yield { resourceVersion: "1", items: [] };
      if (pageSize !== 1) return;
      for (;;) yield { resourceVersion: "1", items: [], page: ++pages };
    },
    watch: () => Readable.from([]),
  };
  const sources = fluxSources({ client: client as unknown as Client, wake: () => synced.resolve() });
  sources.follow("team/site", wanted, sources.latest(wanted));
  await synced.promise;
  sources.stop();
  expect(pages).toBe(0);
});

describe("a kind that the operator may not read in one of its namespaces", () => {
  const wanted = { namespace: "team", ref: { apiVersion: "example.com/v1", kind: "Artifact", name: "site" }, dir: "" };

  function setting() {
    const denied = new Set<string>();
    const client = {
      discover: () => Promise.resolve([{ ...wanted.ref, plural: "artifacts", namespaced: true }]),
      async *pages(_: unknown, { namespace = "" }: { readonly namespace?: string }) {
        await Promise.resolve();
        if (denied.has(namespace)) throw new ApiError("list", { status: 403, reason: "Forbidden", message: "" });
        yield { resourceVersion: "1", items: [] };
      },
      async *watch(_: unknown, { signal }: { readonly signal: AbortSignal }) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        yield* [];
      },
    };
    const clock = manualClock();
    const namespaces = ["team", "other"];
    const sources = fluxSources({ client: client as unknown as Client, wake: () => undefined, namespaces, clock });
    sources.follow("team/site", wanted, sources.latest(wanted));
    return { sources, clock, denied };
  }

  test("is reported, until the operator may read it", async () => {
    const { sources, clock, denied } = setting();
    denied.add("other");
    await clock.advance(1000);
    expect(sources.latest(wanted)).toMatchObject({
      message: "the operator may not read Artifact of example.com/v1: extend its role",
    });
    denied.clear();
    await clock.advance(60_000);
    expect(sources.latest(wanted)).toMatchObject({ message: missingSource("Artifact site") });
    sources.stop();
  });

  test("is still used if the operator could read it before", async () => {
    const { sources, clock, denied } = setting();
    await clock.advance(1000);
    denied.add("other");
    await clock.advance(120_000);
    expect(sources.latest(wanted)).toMatchObject({ message: missingSource("Artifact site") });
    sources.stop();
  });
});
