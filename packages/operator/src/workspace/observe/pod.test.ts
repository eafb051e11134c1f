import { describe, expect, test } from "bun:test";

import { workspaceKind } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";

import { statefulSetIndexers } from "./pod.ts";

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
