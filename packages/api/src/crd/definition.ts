/** Builds the CustomResourceDefinition of a kind. Pure: the same definition always gives the same CRD. */
import { createHash } from "node:crypto";

import type { TSchema } from "typebox";

import { crdHashAnnotation, crdVersionAnnotation } from "../annotations.ts";
import type { ConditionTable } from "../conditions.ts";
import { validatedBy, type CelRule } from "../schema/cel.ts";
import { version } from "../version.ts";
import { structural, withoutDescriptions, type StructuralSchema } from "./structural.ts";

export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "boolean" | "date" | "integer";
  readonly jsonPath: string;
  readonly description: string;
  /** Shown only by `kubectl get --output wide`. */
  readonly wide?: true;
}

export interface KindDefinition {
  readonly kind: string;
  readonly plural: string;
  readonly group: string;
  /** Namespaced if absent. */
  readonly scope?: "Cluster";
  /** The first is the storage version. */
  readonly versions: readonly [string, ...string[]];
  readonly shortNames: readonly string[];
  readonly description: string;
  /** The fields other than apiVersion, kind and metadata. */
  readonly fields: Readonly<Record<string, TSchema>>;
  /** Rules on the whole object. Of metadata, they can read only the name. */
  readonly rules?: readonly CelRule[];
  readonly columns: readonly PrinterColumn[];
  readonly conditions: ConditionTable;
}

export interface CustomResourceDefinition {
  readonly apiVersion: "apiextensions.k8s.io/v1";
  readonly kind: "CustomResourceDefinition";
  readonly metadata: { readonly name: string; readonly annotations: Readonly<Record<string, string>> };
  readonly spec: {
    readonly group: string;
    readonly scope: "Namespaced" | "Cluster";
    readonly names: Readonly<Record<string, string | readonly string[]>>;
    readonly versions: readonly CrdVersion[];
  };
}

interface CrdVersion {
  readonly name: string;
  readonly served: true;
  readonly storage: boolean;
  readonly subresources: { readonly status: Record<string, never> };
  readonly additionalPrinterColumns: readonly object[];
  readonly schema: { readonly openAPIV3Schema: StructuralSchema };
}

const category = "pulumi";

export function buildCrd(definition: KindDefinition): CustomResourceDefinition {
  const { plural, group } = definition;
  const spec = crdSpec(definition);
  const hash = createHash("sha256").update(JSON.stringify(spec)).digest("hex").slice(0, 16);
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${group}`,
      annotations: { [crdVersionAnnotation]: version, [crdHashAnnotation]: hash },
    },
    spec,
  };
}

function crdSpec(definition: KindDefinition): CustomResourceDefinition["spec"] {
  const { kind, plural, group, scope = "Namespaced" } = definition;
  return {
    group,
    scope,
    names: {
      kind,
      listKind: `${kind}List`,
      plural,
      singular: kind.toLowerCase(),
      shortNames: definition.shortNames,
      categories: [category],
    },
    versions: definition.versions.map((name, index) => crdVersion(definition, { name, storage: index === 0 })),
  };
}

function crdVersion(definition: KindDefinition, which: Pick<CrdVersion, "name" | "storage">): CrdVersion {
  return {
    ...which,
    served: true,
    subresources: { status: {} },
    additionalPrinterColumns: definition.columns.map(printerColumn),
    // Only the storage version has descriptions: `kubectl explain` shows that version, and the manifest stays small.
    schema: { openAPIV3Schema: which.storage ? rootSchema(definition) : withoutDescriptions(rootSchema(definition)) },
  };
}

function printerColumn({ wide, ...column }: PrinterColumn): object {
  return wide ? { ...column, priority: 10 } : column;
}

export function rootSchema(definition: KindDefinition): StructuralSchema {
  const fields = Object.entries(definition.fields).map(([name, schema]) => [name, structural(schema)] as const);
  return {
    type: "object",
    description: definition.description,
    ...(definition.rules && validatedBy(...definition.rules)),
    properties: {
      apiVersion: { type: "string", description: "The API version of the object." },
      kind: { type: "string", description: `The kind of the object: ${definition.kind}.` },
      metadata: { type: "object" },
      ...Object.fromEntries(fields),
    },
  };
}
