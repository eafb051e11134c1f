import { describe, expect, test } from "bun:test";

import { asOwner, isOwnedBy, classifyOwnership } from "./ownership.ts";
import type { KubeObject, ObjectMeta } from "../resource.ts";

type OwnerReference = NonNullable<ObjectMeta["ownerReferences"]>[number];

const workspace = { apiVersion: "auto.pulumi.com/v1alpha1", kind: "Workspace" };
const owner = asOwner(workspace, { metadata: { name: "web", uid: "uid-now" } });

const reference = (change: Partial<OwnerReference> = {}): OwnerReference => ({
  ...workspace,
  name: "web",
  uid: "uid-now",
  controller: true,
  ...change,
});

const objectWith = (...ownerReferences: OwnerReference[]): KubeObject => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web-workspace", namespace: "shop", uid: "uid-of-service", resourceVersion: "7", ownerReferences },
});

const notController = { controller: false };
const earlier = { uid: "uid-before" };
const deployment = reference({ apiVersion: "apps/v1", kind: "Deployment", name: "shop", uid: "uid-of-shop" });

const cases: readonly (readonly [string, KubeObject | undefined, string])[] = [
  ["no object is absent", undefined, "absent"],
  ["an object whose controller has the owner's UID is ours", objectWith(reference()), "ours"],
  ["it is ours even if it has another owner too", objectWith({ ...deployment, ...notController }, reference()), "ours"],
  [
    "it is ours even if the reference has another API version",
    objectWith(reference({ apiVersion: "auto.pulumi.com/v1" })),
    "ours",
  ],
  [
    "an object that has no controller and lists the owner is a dependent",
    objectWith(reference(notController)),
    "dependent",
  ],
  [
    "an object that lists the owner and has another controller is foreign",
    objectWith(reference(notController), deployment),
    "foreign",
  ],
  ["an object without owners is foreign", objectWith(), "foreign"],
  ["an object of another controller is foreign", objectWith(deployment), "foreign"],
  [
    "an owner of the same name and another kind is foreign",
    objectWith(reference({ ...earlier, kind: "Stack" })),
    "foreign",
  ],
  [
    "an owner of the same kind and another name is foreign",
    objectWith(reference({ ...earlier, name: "api" })),
    "foreign",
  ],
  [
    "an owner of the same kind and name in another API group is foreign",
    objectWith(reference({ ...earlier, apiVersion: "example.com/v1" })),
    "foreign",
  ],
  [
    "an object of an earlier owner of the same name waits for the garbage collector",
    objectWith(reference(earlier)),
    "former",
  ],
  [
    "so does one whose earlier owner was not its controller",
    objectWith(reference({ ...earlier, ...notController })),
    "former",
  ],
];

describe("ownership", () => {
  test.each(cases)("%s", (_, existing, expected) => {
    expect(classifyOwnership(existing, owner).kind).toBe(expected as never);
  });

  test("the result names the object and its owner", () => {
    expect(classifyOwnership(objectWith(deployment), owner)).toEqual({
      kind: "foreign",
      occupant: {
        kind: "Service",
        namespace: "shop",
        name: "web-workspace",
        owner: { kind: "Deployment", name: "shop" },
      },
    });
    expect(classifyOwnership(objectWith(), owner)).toEqual({
      kind: "foreign",
      occupant: { kind: "Service", namespace: "shop", name: "web-workspace" },
    });
  });

  test("the result has the version for the precondition of a write", () => {
    expect(classifyOwnership(objectWith(reference()), owner)).toEqual({
      kind: "ours",
      version: { uid: "uid-of-service", resourceVersion: "7" },
    });
  });

  test("an owner without a UID owns nothing", () => {
    const unknown = asOwner(workspace, { metadata: { name: "web" } });
    expect(classifyOwnership(objectWith(reference({ uid: "" })), unknown).kind).not.toBe("ours");
    expect(isOwnedBy(objectWith(reference({ uid: "" })), unknown)).toBe(false);
  });
});
