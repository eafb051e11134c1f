/** From a kind's definition to its CustomResourceDefinition. Pure: the same definition gives the same object. */
import { createHash } from "node:crypto";

import type { TSchema } from "typebox";

import { crdHashAnnotation, crdVersionAnnotation } from "../annotations.ts";
import type { ConditionTable } from "../conditions.ts";
import { validatedBy, type CelRule } from "../schema/cel.ts";
import { version } from "../version.ts";
import { structural, withoutSentences, type StructuralSchema } from "./structural.ts";

export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "date" | "integer";
  readonly jsonPath: string;
  readonly description: string;
  /** Shown by `kubectl get --output wide` alone. */
  readonly wide?: true;
}

export interface KindDefinition {
  readonly kind: string;
  readonly plural: string;
  readonly group: string;
  /** The first is stored. */
  readonly versions: readonly [string, ...string[]];
  readonly shortNames: readonly string[];
  readonly description: string;
  /** The fields beside apiVersion, kind and metadata. */
  readonly fields: Readonly<Record<string, TSchema>>;
  /** Rules on the whole object: of metadata they see the name alone. */
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
    readonly scope: "Namespaced";
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

export function crdOf(definition: KindDefinition): CustomResourceDefinition {
  const { plural, group } = definition;
  const spec = specOf(definition);
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

function specOf(definition: KindDefinition): CustomResourceDefinition["spec"] {
  const { kind, plural, group } = definition;
  return {
    group,
    scope: "Namespaced",
    names: {
      kind,
      listKind: `${kind}List`,
      plural,
      singular: kind.toLowerCase(),
      shortNames: definition.shortNames,
      categories: [category],
    },
    versions: definition.versions.map((name, index) => versionOf(definition, { name, storage: index === 0 })),
  };
}

function versionOf(definition: KindDefinition, which: Pick<CrdVersion, "name" | "storage">): CrdVersion {
  return {
    ...which,
    served: true,
    subresources: { status: {} },
    additionalPrinterColumns: definition.columns.map(printed),
    // Sentences in the stored version alone: `kubectl explain` shows that one, and the manifest stays small.
    schema: { openAPIV3Schema: which.storage ? rootSchema(definition) : withoutSentences(rootSchema(definition)) },
  };
}

function printed({ wide, ...column }: PrinterColumn): object {
  return wide ? { ...column, priority: 10 } : column;
}

export function rootSchema(definition: KindDefinition): StructuralSchema {
  const fields = Object.entries(definition.fields).map(([name, schema]) => [name, structural(schema)] as const);
  return {
    type: "object",
    description: definition.description,
    ...(definition.rules && validatedBy(...definition.rules)),
    properties: {
      apiVersion: { type: "string", description: "The version of the API that the object is written in." },
      kind: { type: "string", description: `The kind of the object: ${definition.kind}.` },
      metadata: { type: "object" },
      ...Object.fromEntries(fields),
    },
  };
}
