/** Paths of properties in the notation of Pulumi: `spec.ports[0]`, `data["a.b"]`. */

export type PropertyPath = readonly (string | number)[];

const quotedSegment = /^\["((?:\\"|[^"])*)"\]/;
const indexSegment = /^\[(\d{1,9})\]/;
const nameSegment = /^[^.[]+/;

/** Splits `a.b[0]["c.d"]` into its segments; undefined if it is not a path. */
export function parsePath(text: string): (string | number)[] | undefined {
  const segments: (string | number)[] = [];
  let rest = text;
  while (rest !== "") {
    const dotted = segments.length > 0 && rest.startsWith(".");
    if (dotted) rest = rest.slice(1);
    const quoted = dotted ? null : quotedSegment.exec(rest);
    const index = dotted ? null : indexSegment.exec(rest);
    const name = segments.length === 0 || dotted ? nameSegment.exec(rest) : null;
    const match = quoted ?? index ?? name;
    if (!match) return undefined;
    if (quoted) segments.push((quoted[1] ?? "").replaceAll(String.raw`\"`, '"'));
    else if (index) segments.push(Number(index[1]));
    else segments.push(match[0]);
    rest = rest.slice(match[0].length);
  }
  return segments;
}

export function formatPath(path: PropertyPath): string {
  return path.reduce<string>((text, segment) => {
    if (typeof segment === "number") return `${text}[${segment}]`;
    if (!/^[\w$-]+$/.test(segment)) return `${text}[${JSON.stringify(segment)}]`;
    return text === "" ? segment : `${text}.${segment}`;
  }, "");
}

/** Deeper differences are not looked for. */
const maxDepth = 64;

/** The paths at which two values differ. The engine masks secrets, so a changed secret has no difference. */
export function differences(before: unknown, after: unknown, path: PropertyPath = []): PropertyPath[] {
  if (!isNested(before) || !isNested(after)) return before === after ? [] : [path];
  if (Array.isArray(before) !== Array.isArray(after)) return [path];
  if (path.length === maxDepth) return [];
  const [old, fresh] = [asRecord(before), asRecord(after)];
  const names = [...new Set([...Object.keys(old), ...Object.keys(fresh)])];
  // The items of a list are in order already.
  const sorted = Array.isArray(after) ? names : names.toSorted();
  return sorted.flatMap((name) =>
    differences(old[name], fresh[name], [...path, Array.isArray(after) ? Number(name) : name]),
  );
}

const isNested = (value: unknown): value is object => typeof value === "object" && value !== null;

export const asRecord = (value: unknown): Readonly<Record<string, unknown>> => (isNested(value) ? { ...value } : {});
