import { describe, expect, test } from "bun:test";

import { workspaceKind } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";

import { pod, set, view } from "../testing/views.ts";
import { statefulSetIndexers, whyNotStarted, withImageOfTemplate } from "./pod.ts";

describe("an image without a shell is known", () => {
  const [index] = Object.values(statefulSetIndexers);
  const recording = (owner: object): ApiObject<StatefulSet> => ({
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: {
      name: "web",
      namespace: "team",
      annotations: { "auto.pulumi.com/image-without-shell": "mine:1" },
      ownerReferences: [{ ...workspaceKind, name: "web", uid: "w1", controller: true, ...owner }],
    },
  });

  test("in the namespace of the Workspace whose StatefulSet records it", () =>
    expect(index?.(recording({}))).toEqual(["team/mine:1"]));
  test("not from the StatefulSet of another controller", () => {
    expect(index?.(recording({ kind: "Deployment" }))).toEqual([]);
    expect(index?.(recording({ controller: false }))).toEqual([]);
  });
});

test("why a pod did not start is known until it is created again", () => {
  const scaledTo = (replicas: number): ApiObject<StatefulSet> => ({
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { annotations: { "auto.pulumi.com/not-started": "no such image" } },
    spec: { replicas, serviceName: "web", selector: {}, template: {} },
  });
  expect(whyNotStarted(scaledTo(0))).toBe("no such image");
  expect(whyNotStarted(scaledTo(1))).toBeUndefined();
});

describe("an image without a shell that admission changed", () => {
  const facts = view(set(), pod({ revision: "one", imageWithoutShell: "mirror.local/mine:1" })).pod;
  if (!facts) throw new Error("the view has no pod");
  const statefulSet = (updateRevision: string): ApiObject<StatefulSet> => ({
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { generation: 1 },
    spec: {
      serviceName: "web",
      selector: {},
      template: { spec: { containers: [{ name: "pulumi", image: "mine:1" }] } },
    },
    status: { replicas: 1, observedGeneration: 1, updateRevision },
  });

  test("is that of the template", () =>
    expect(withImageOfTemplate(facts, statefulSet("one")).imageWithoutShell).toBe("mine:1"));
  test("is unknown for a pod of an earlier template", () =>
    expect(withImageOfTemplate(facts, statefulSet("two")).imageWithoutShell).toBe("mirror.local/mine:1"));
});
