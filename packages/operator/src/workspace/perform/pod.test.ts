import { describe, expect, test } from "bun:test";

import { ApiError, type ApiObject } from "@pko/kube";
import type { Pod, PodTemplateSpec } from "kubernetes-types/core/v1";

import { given, set, view } from "../testing/views.ts";
import { dryRunPod } from "./pod.ts";
import type { Writer } from "./owned.ts";

describe("a pod with a helper container that is rejected", () => {
  const observed = view(set());
  const { inputs } = observed;
  if (!inputs?.pod.ok) throw new Error("the view has no pod");
  const { objects } = inputs.pod;
  const withContainers = (...names: string[]): PodTemplateSpec => ({
    spec: { containers: names.map((name) => ({ name })) },
  });
  const withInitContainer = { template: withContainers("pulumi"), objects };
  const pod = { ok: true, template: withContainers("bootstrap", "pulumi"), objects, withInitContainer } as const;
  const context = { view: view(set(), given({ inputs: { ...inputs, pod } })), signal: new AbortController().signal };

  const rejecting = (isRejected: (pod: ApiObject<Pod>) => boolean): Writer => {
    const create = async (_: unknown, each: ApiObject<Pod>): Promise<void> => {
      if (isRejected(each)) throw new ApiError("POST pods", { status: 403, reason: "Forbidden", message: "too small" });
    };
    return { client: { create } } as unknown as Writer;
  };

  test("gets an init container, if it is admitted with that", async () => {
    const writer = rejecting(({ spec }) => (spec?.containers.length ?? 0) > 1);
    const expected = { ok: true, ...withInitContainer } as const;
    expect(await dryRunPod(writer, context)).toEqual({
      kind: "replan",
      facts: { inputs: { ...inputs, pod: expected } },
    });
  });

  test("is reported, if the helper container is not the cause", async () => {
    const admission = { kind: "rejected", message: "too small" } as const;
    expect(
      await dryRunPod(
        rejecting(() => true),
        context,
      ),
    ).toEqual({ kind: "replan", facts: { admission } });
  });
});
