/** Random changes to JSON values, reproducible by seed. */

export type Numbers = () => number;

const garbage: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  "",
  " ",
  "-x",
  "../../etc/passwd",
  "\u0000",
  "\uD83D\uDE00".repeat(40),
  "x".repeat(5000),
  [],
  {},
  [[]],
  { __proto__: null, constructor: 1 },
  JSON.parse('{"__proto__": {"a": 1}, "": 2}'),
  { type: "Env", secret: "x" },
  { name: 1 },
];

const keys = [
  "branch",
  "commit",
  "tag",
  "programRef",
  "fluxSource",
  "config",
  "type",
  "secret",
  "name",
  "requirement",
  "",
];

function pick<T>(choices: readonly T[], next: Numbers): T | undefined {
  return choices[Math.floor(next() * choices.length)];
}

/** A copy of `value` with one to four random changes. */
export function mutate(value: unknown, next: Numbers): unknown {
  let result: unknown = structuredClone(value);
  const changes = 1 + Math.floor(next() * 4);
  for (let change = 0; change < changes; change++) result = changeOne(result, next);
  return result;
}

function changeOne(value: unknown, next: Numbers): unknown {
  if (typeof value !== "object" || value === null || next() < 0.1) return pick(garbage, next);
  return Array.isArray(value) ? changeList(value, next) : changeObject(value as Record<string, unknown>, next);
}

function changeList(list: readonly unknown[], next: Numbers): unknown[] {
  const at = Math.floor(next() * list.length);
  const choice = next();
  if (choice < 0.2) return list.toSpliced(at, 1);
  if (choice < 0.4) return list.toSpliced(at, 0, list[at] ?? pick(garbage, next));
  return list.length === 0 ? [pick(garbage, next)] : list.with(at, changeOne(list[at], next));
}

function changeObject(object: Readonly<Record<string, unknown>>, next: Numbers): Record<string, unknown> {
  const key = pick(Object.keys(object), next) ?? "";
  const choice = next();
  if (choice < 0.2) return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
  if (choice < 0.35) return { ...object, [pick(keys, next) ?? ""]: pick(garbage, next) };
  return { ...object, [key]: changeOne(object[key], next) };
}
