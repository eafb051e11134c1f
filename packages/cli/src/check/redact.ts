/** Removes what may be secret from objects and texts of a support bundle. Pure. */

const removed = "[removed]";

/** Fields whose values are configuration, inputs or results of programs. Their keys stay. */
const valueFields: ReadonlySet<string> = new Set(["config", "secrets", "outputs", "data", "stringData"]);

/** Fields that are removed as a whole. */
const droppedFields: ReadonlySet<string> = new Set(["managedFields"]);
const droppedAnnotations: ReadonlySet<string> = new Set(["kubectl.kubernetes.io/last-applied-configuration"]);

/** Credentials that can be recognized by their form. */
const patterns: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g, removed],
  [/\bpul-[0-9a-f]{40}\b/g, removed],
  [/\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}\b/g, removed],
  [/\bgithub_pat_\w{20,}\b/g, removed],
  [/\bglpat-[\w-]{20,}/g, removed],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, removed],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, removed],
  [/\b([Bb]earer|[Tt]oken) +[\w.~+/-]{16,}=*/g, `$1 ${removed}`],
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s/@:]+:[^\s/@]+@/gi, `$1${removed}@`],
];

export function redactText(text: string): string {
  return patterns.reduce((redacted, [pattern, replacement]) => redacted.replaceAll(pattern, replacement), text);
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
