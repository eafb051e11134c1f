import { expect, test } from "bun:test";

import { globSelector } from "./globs.ts";

const cases: readonly (readonly [string, readonly string[], Readonly<Record<string, boolean>>])[] = [
  ["no filters select everything", [], { "a.ts": true, "docs/b.md": true }],
  [
    "a filter matches the whole path",
    ["infra/Pulumi.yaml"],
    { "infra/Pulumi.yaml": true, "infra/Pulumi.yaml.bak": false },
  ],
  ["the name of a directory matches no file in it", ["infra"], { infra: true, "infra/a.ts": false }],
  [
    "a star matches within one directory",
    ["infra/*"],
    { "infra/a.ts": true, "infra/b/a.ts": false, "infra/.env": true },
  ],
  ["two stars match at any depth", ["infra/**"], { "infra/a.ts": true, "infra/b/c/.d": true, "infra2/a.ts": false }],
  ["a suffix at any depth", ["**/*.ts"], { "a.ts": true, "x/y/a.ts": true, "x/y/a.tsx": false }],
  ["alternatives", ["{web,api}/**"], { "web/a": true, "api/b": true, "db/c": false }],
  ["only exclusions select the rest", ["!docs/**"], { "infra/a.ts": true, "docs/a.md": false }],
  [
    "exclusions win, whatever their order",
    ["!infra/docs/**", "infra/**"],
    { "infra/a.ts": true, "infra/docs/a.md": false, "web/a.ts": false },
  ],
];
test.each(cases)("%s", (_, globs, names) => {
  const selects = globSelector(globs);
  expect(Object.fromEntries(Object.keys(names).map((name) => [name, selects(name)]))).toEqual({ ...names });
});

const many = <T>(length: number, each: (index: number) => T): T[] => Array.from({ length }, (_, index) => each(index));
/** That nobody needs, and that take as long as possible. */
const slow = many(100, (index) => `**/${"*a/".repeat(100)}*[!b]${index}?`);
const longest = `${"aaaa/".repeat(204)}b`;

test("what would take too long to match is selected, and does not block the process", () => {
  const names = many(1000, () => longest);
  const start = performance.now();
  const selected = names.filter(globSelector(slow));
  // Without a limit, it takes minutes; a busy machine needs more than the 30 ms of an idle one.
  expect(performance.now() - start).toBeLessThan(2000);
  expect(selected).toHaveLength(1000);
  expect(names.filter(globSelector(slow.map((glob) => `!${glob}`)))).toHaveLength(1000);
});

test("a few long names are matched exactly", () => {
  expect(globSelector(slow.slice(0, 4))(longest)).toBe(false);
});

test("groups of alternatives, which multiply, count as often as that", () => {
  const names = many(100, () => "a".repeat(200));
  const selected = (groups: number): number =>
    names.filter(globSelector([`${"{*a,*b,*c,*d}".repeat(groups)}[e]*`])).length;
  expect([selected(1), selected(3) > 50, selected(20)]).toEqual([0, true, 100]);
});

test("a caller may allow less work", () => {
  const isSelected = globSelector(["**/*[!a]"], 2000);
  expect(many(4, () => "a".repeat(20)).map(isSelected)).toEqual([false, false, false, true]);
});

test("ordinary filters select exactly from the files of a very large commit", () => {
  const filters = [
    "infra/**",
    "services/{web,shop}/**",
    "{libs,tools}/{a,b,c}/{src,test}/**",
    "packages/{one,two,three,four,five,six,seven,eight,nine,ten}/src/**",
    "**/*.json",
    "*.lock",
    "Pulumi.yaml",
    "!docs/**",
    "!**/*.md",
  ];
  const unrelated = many(10_000, (index) => `services/api/src/components/part-${index % 97}/module-${index}.ts`);
  expect(unrelated.filter(globSelector(filters))).toEqual([]);
  const related = ["services/shop/a.ts", "libs/b/test/x.ts", "packages/ten/src/index.ts", "a/b.json"];
  expect([...unrelated, ...related, "a/b.md"].filter(globSelector(filters))).toEqual(related);
});

const alternatives: readonly (readonly [string, Readonly<Record<string, boolean>>])[] = [
  ["{a,b}{c,d}", { ac: true, bd: true, ab: false, a: false }],
  ["**/{a,b}", { a: true, "x/y/b": true, c: false }],
  ["{a,b}/**/c", { "a/c": true, "b/x/c": true, "c/x/c": false }],
  ["{a,{b,c}}d", { ad: true, cd: true, dd: false }],
  ["{,a}b", { b: true, ab: true, bb: false }],
  ["{*.ts,src/*}", { "a.ts": true, "src/a": true, "lib/a": false }],
  ["**/a", { a: true, "b/a": true, "b/ca": false }],
];
test.each(alternatives)("%s means what it means to Bun", (glob, names) => {
  const selects = globSelector([glob]);
  for (const [name, expected] of Object.entries(names)) {
    expect([name, selects(name)]).toEqual([name, expected]);
    expect([name, new Bun.Glob(glob).match(name)]).toEqual([name, expected]);
  }
});
