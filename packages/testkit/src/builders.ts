/** Builders of objects for tests: `anObject(builtin.pods, "web-0", inNamespace("a"), labeled({ app: "web" }), deleting())`. */
import type { KubeObject, ObjectMeta, Resource } from "@pko/kube";

/** Changes one aspect of an object. */
type Trait<T extends KubeObject = KubeObject> = (object: T) => T;

const longAgo = "2030-01-01T00:00:00Z";

/** An object as the API server returns it: with UID, version and creation time. */
export function anObject<T extends KubeObject>(resource: Resource<T>, name: string, ...traits: Trait<T>[]): T {
  const identity: KubeObject = {
    apiVersion: resource.apiVersion,
    kind: resource.kind,
    metadata: {
      name,
      ...(resource.namespaced && { namespace: "default" }),
      uid: `uid-of-${name}`,
      resourceVersion: "1",
      generation: 1,
      creationTimestamp: longAgo,
    },
  };
  // The traits add the rest; a test that omits a required part will fail.
  return traits.reduce((object, trait) => trait(object), identity as T);
}

/** Only what a user writes, for objects to create. */
export function aManifest<T extends KubeObject>(resource: Resource<T>, name: string, ...traits: Trait<T>[]): T {
  const object = anObject(resource, name, ...traits);
  const { uid: _, resourceVersion: __, generation: ___, creationTimestamp: ____, ...metadata } = object.metadata;
  return { ...object, metadata };
}

type AnyTrait = <T extends KubeObject>(object: T) => T;

function meta(change: (metadata: ObjectMeta) => Partial<ObjectMeta>): AnyTrait {
  return (object) => ({ ...object, metadata: { ...object.metadata, ...change(object.metadata) } });
}

export const inNamespace = (namespace: string): AnyTrait => meta(() => ({ namespace }));

export const labeled = (labels: Readonly<Record<string, string>>): AnyTrait =>
  meta((metadata) => ({ labels: { ...metadata.labels, ...labels } }));

export const annotated = (annotations: Readonly<Record<string, string>>): AnyTrait =>
  meta((metadata) => ({ annotations: { ...metadata.annotations, ...annotations } }));

export const atGeneration = (generation: number): AnyTrait => meta(() => ({ generation }));

export const finalizedBy = (...finalizers: readonly string[]): AnyTrait =>
  meta((metadata) => ({ finalizers: [...(metadata.finalizers ?? []), ...finalizers] }));

/** The object is being deleted and waits for a finalizer. */
export const deleting = (deletionTimestamp = longAgo): AnyTrait => meta(() => ({ deletionTimestamp }));

/** As its controller, of which there can be only one. */
export const ownedBy = (owner: KubeObject): AnyTrait =>
  meta((metadata) => ({
    ownerReferences: [
      ...(metadata.ownerReferences ?? []),
      {
        apiVersion: owner.apiVersion,
        kind: owner.kind,
        name: owner.metadata.name ?? "",
        uid: owner.metadata.uid ?? "",
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  }));

/** Any other part of the object, for example `having({ spec: { … } })`. */
export const having =
  <T extends KubeObject>(part: Partial<Omit<T, keyof KubeObject>>): Trait<T> =>
  (object) => ({ ...object, ...part });
