import { expect, test } from "bun:test";

import { describeSource } from "./stack/state.ts";
import { withoutPassword, withoutUser } from "./without-password.ts";

test.each([
  ["https://git.example.com/a/b", "https://git.example.com/a/b"],
  ["https://user:secret@git.example.com/a/b", "https://git.example.com/a/b"],
  ["https://user:sec@ret@git.example.com/a/b", "https://git.example.com/a/b"],
  ["https://git.example.com/a@b", "https://git.example.com/a@b"],
  ["git@git.example.com:a/b", "git@git.example.com:a/b"],
  ["git.example.com:a/b", "git.example.com:a/b"],
  ["ssh://git@git.example.com/a/b", "ssh://git.example.com/a/b"],
  ["https://git.example.com:8443/a/b", "https://git.example.com:8443/a/b"],
  ["https://user@git.example.com/a/@scope/b", "https://git.example.com/a/@scope/b"],
  ["https://[::1]/a/@scope/b", "https://[::1]/a/@scope/b"],
  ["https://git@[::1]/a/@scope/b", "https://[::1]/a/@scope/b"],
  ["https://git.example.com/user:secret@a", "https://a"],
  ["https://git.example.com:8443/@scope/b", "https://git.example.com:8443/@scope/b"],
  ["https://[::1]:8443/@scope/b", "https://[::1]:8443/@scope/b"],
  // What follows the `@` may be the host.
  ["https://git.example.com:8443/a/@scope/b", "https://scope/b"],
  ["https://user:1234/@git.example.com/a", "https://git.example.com/a"],
  ["https://user:1234/@host/a", "https://host/a"],
  ["https://alice.smith:1234/@git.example.com/a", "https://git.example.com/a"],
  ["https://alice.smith:99999/@host/a", "https://host/a"],
  ["https://alice.smith:12/@secret/x@host/a", "https://host/a"],
  ["https:/alice.smith:1234/@host/a", "https:/host/a"],
  // Not valid, but the console shows what the spec contains.
  ["https:/user:secret@git.example.com/a", "https:/git.example.com/a"],
  ["https:user:secret@git.example.com/a", "https:git.example.com/a"],
  ["https:///user:secret@git.example.com/a", "https:///git.example.com/a"],
  [String.raw`https:\\user:secret@git.example.com\a`, String.raw`https:\\git.example.com\a`],
  ["\thttps://user:secret@git.example.com/a", "\thttps://git.example.com/a"],
  ["ht\ttps://user:secret@git.example.com/a", "git.example.com/a"],
  ["HTTPS:/user:secret@git.example.com/a", "HTTPS:/git.example.com/a"],
  ["user:secret@git.example.com:a/b", "git.example.com:a/b"],
  ["https://user:/secret@git.example.com/a", "https://git.example.com/a"],
  ["https://user:12/secret@git.example.com/a", "https://git.example.com/a"],
  ["https://user:sec@ret/x@git.example.com/a", "https://git.example.com/a"],
  ["https://user:a?b#c@git.example.com/a", "https://git.example.com/a"],
  [String.raw`https://user:a\b@git.example.com/a`, "https://git.example.com/a"],
  ["https://[::1]:12/secret@git.example.com/a", "https://git.example.com/a"],
  ["ssh:/user:12/secret@git.example.com/a", "ssh:/git.example.com/a"],
  ["user:12/secret@git.example.com:a/b", "git.example.com:a/b"],
  ["alice@example.com:12/secret@git.example.com/a", "git.example.com/a"],
  ["https//user:secret@git.example.com/a", "git.example.com/a"],
  ["https;//user:secret@git.example.com/a", "git.example.com/a"],
  ["//user:secret@git.example.com/a", "git.example.com/a"],
  ["://user:secret@git.example.com/a", "git.example.com/a"],
])("the URL %s is shown as %s", (url, shown) => {
  expect(withoutPassword(url)).toBe(shown);
});

test.each([
  ["with a scheme", (colons: string) => withoutPassword(`https://git.example.com/${colons}`)],
  ["without one", (colons: string) => withoutPassword(colons)],
  ["that is only a path", (colons: string) => withoutUser(colons)],
])("a long URL %s does not block the process", (_, shown) => {
  // As long as the body of a webhook may be. In quadratic time, the test would time out.
  const colons = ":".repeat(1024 ** 2);
  expect(shown(colons).length).toBeGreaterThanOrEqual(colons.length);
});

test("the source of a Stack is shown without the password", () => {
  const spec = { stack: "dev", projectRepo: "https://user:secret@git.example.com/a/b", branch: "main" };
  expect(describeSource(spec)).toBe("https://git.example.com/a/b main");
});
