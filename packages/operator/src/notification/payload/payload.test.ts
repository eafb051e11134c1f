/** The payloads, for people to read: `UPDATE_GOLDEN=1 bun test` rewrites them. */
import { expect, test } from "bun:test";
import { occurrenceKinds } from "@pko/api";

import { now, occurrenceAt } from "../testing/views.ts";
import { payloadFor } from "./payload.ts";
import { digest } from "./text.ts";

const origin = { namespace: "prod", clusterName: "eu-1" };
const failure = occurrenceAt(now, {
  message: "<!channel> a < b & `c` *d* [e](https://evil.example)",
  permalink: "https://app.pulumi.com/acme/web/dev/updates/1?a=1&b=2",
});
const everyKind = occurrenceKinds.map((kind, index) =>
  occurrenceAt(now + index * 1000, { kind, stack: `web-${index}` }),
);
const many = Array.from({ length: 1000 }, (_, index) => occurrenceAt(now + index, { stack: `web-${index}` }));

for (const type of ["CloudEvents", "Slack", "Teams"] as const) {
  test.each([
    ["one", [failure]],
    ["every-kind", everyKind],
    ...(type === "CloudEvents" ? [] : [["many", many] as const]),
  ] as const)(`${type}: %s`, async (name, occurrences) => {
    const { contentType, body } = payloadFor(type, occurrences, origin);
    const text = `${contentType}\n${JSON.stringify(JSON.parse(body), undefined, 2)}\n`;
    const file = Bun.file(new URL(`testdata/${type.toLowerCase()}-${name}.txt`, import.meta.url));
    if (process.env["UPDATE_GOLDEN"]) await Bun.write(file, text);
    expect(text).toBe(await file.text());
  });
}

test("a message about a thousand Stacks has the counts, and the first ten names", () => {
  const [destroyed, succeeded] = [
    occurrenceAt(now, { kind: "Destroyed" }),
    occurrenceAt(now, { kind: "UpdateSucceeded" }),
  ];
  const { title, lines, omitted, severity } = digest([succeeded, destroyed, ...many], origin);
  expect(title).toBe(
    "1000 updates failed, 1 update succeeded, 1 Stack was destroyed in namespace prod of cluster eu-1",
  );
  expect([lines.length, omitted, severity]).toEqual([10, "… and 992 more: kubectl get stacks -n prod", "Error"]);
  expect(lines[9]?.title).toContain("Stack web-9:");
});

test("what programs have written cannot mention anyone, format the message or end its code block", () => {
  const { text } = JSON.parse(payloadFor("Slack", [failure], origin).body) as { text: string };
  expect(text).not.toContain("<!");
  expect(text.match(/```/g)?.length).toBe(2);
  const teams = payloadFor("Teams", [failure], origin).body;
  expect(teams).not.toContain('"TextBlock"');
  expect(teams).toContain("[e](https://evil.example)");
});

test("a thousand CloudEvents fit into a megabyte", () => {
  const long = many.map((each) => Object.assign({}, each, { message: "x".repeat(300) }));
  expect(payloadFor("CloudEvents", long, origin).body.length).toBeLessThan(1024 * 1024);
});
