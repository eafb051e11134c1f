import { expect, test } from "bun:test";

import { withoutPassword } from "./without-password.ts";

test.each([
  ["https://git.example.com/a/b", "https://git.example.com/a/b"],
  ["https://user:secret@git.example.com/a/b", "https://git.example.com/a/b"],
  ["https://user:sec@ret@git.example.com/a/b", "https://git.example.com/a/b"],
  ["https://git.example.com/a@b", "https://git.example.com/a@b"],
  ["git@git.example.com:a/b", "git@git.example.com:a/b"],
])("the URL %s is shown as %s", (url, shown) => {
  expect(withoutPassword(url)).toBe(shown);
});
