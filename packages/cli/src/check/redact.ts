/** Removes what may be secret from objects and texts of a support bundle. Pure. */
import { maskCredentials } from "@pko/records";

const removed = "[removed]";

/** Fields whose values are configuration, inputs or results of programs. Their keys stay. */
const valueFields: ReadonlySet<string> = new Set(["config", "secrets", "outputs", "data", "stringData"]);

/** Fields that are removed as a whole. */
const droppedFields: ReadonlySet<string> = new Set(["managedFields"]);
const droppedAnnotations: ReadonlySet<string> = new Set(["kubectl.kubernetes.io/last-applied-configuration"]);

export function redactText(text: string): string {
  return maskCredentials(text, removed);
}

export function redactObject(value: unknown, field = ""): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => redactObject(each, field));
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]: [string, unknown]) => {
      if (droppedFields.has(name) || droppedAnnotations.has(name)) return [];
      return [[name, redactField(name, each, { parent: field, siblings: value })]];
    }),
  );
}

interface Place {
  readonly parent: string;
  readonly siblings: object;
}

function redactField(name: string, value: unknown, { parent, siblings }: Place): unknown {
  if (valueFields.has(name)) return masked(value);
  // A literal of a reference, a variable of a container, or an item of a configuration.
  const isValue = name === "value" && (parent === "literal" || "name" in siblings || "key" in siblings);
  return isValue ? removed : redactObject(value, name);
}

function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => masked(each));
  if (typeof value !== "object" || value === null) return removed;
  return Object.fromEntries(Object.keys(value).map((key) => [key, removed]));
}
