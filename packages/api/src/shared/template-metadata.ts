/** Metadata in templates: every field of an object's metadata is accepted, but only labels and annotations have an effect. */
import { Type, type Static } from "typebox";

import { flag, int64, labels, listOf, optional, text, texts, time } from "../schema/field.ts";

export const unused = "Accepted for compatibility; has no effect.";

const OwnerReference = Type.Object(
  {
    apiVersion: optional(text(unused)),
    blockOwnerDeletion: optional(flag(unused)),
    controller: optional(flag(unused)),
    kind: optional(text(unused)),
    name: optional(text(unused)),
    uid: optional(text(unused)),
  },
  { description: unused },
);

export const TemplateMetadata = Type.Object(
  {
    labels: optional(labels("Labels to add to the generated object.")),
    annotations: optional(labels("Annotations to add to the generated object.")),
    creationTimestamp: optional(time(unused)),
    deletionGracePeriodSeconds: optional(int64(unused)),
    deletionTimestamp: optional(time(unused)),
    finalizers: optional(texts(unused)),
    generateName: optional(text(unused)),
    generation: optional(int64(unused)),
    name: optional(text(unused)),
    namespace: optional(text(unused)),
    ownerReferences: optional(listOf(OwnerReference, unused)),
    resourceVersion: optional(text(unused)),
    uid: optional(text(unused)),
  },
  { description: "Metadata to merge into the generated object. Only labels and annotations have an effect." },
);
export type TemplateMetadata = Static<typeof TemplateMetadata>;

export const PlainMetadata = Type.Object(
  { labels: TemplateMetadata.properties.labels, annotations: TemplateMetadata.properties.annotations },
  { description: "Labels and annotations to merge into the generated object." },
);

/** The `apiVersion` and `kind` that a template may contain. */
export const templateIdentity = { apiVersion: optional(text(unused)), kind: optional(text(unused)) };

/** A template's `status`. */
export const unusedStatus = { description: unused };
