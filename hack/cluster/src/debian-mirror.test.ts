import { expect, test } from "bun:test";

import { mirrorIn } from "./debian-mirror.ts";

test.each<[string, string, string | undefined]>([
  [
    "the deb822 format",
    "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\n",
    "http://mirror.example/debian",
  ],
  ["the one-line format", "deb http://mirror.example/debian bookworm main\n", "http://mirror.example/debian"],
  [
    "options before the address",
    "deb [arch=amd64] http://mirror.example/debian/ bookworm main\n",
    "http://mirror.example/debian/",
  ],
  [
    "a file with comments",
    "# URIs: http://old.example/debian\nURIs: http://mirror.example/debian\n",
    "http://mirror.example/debian",
  ],
  ["no entry for security updates", "URIs: http://mirror.example/debian-security\n", undefined],
  ["no third-party entry", "deb https://deb.nodesource.example/node_20.x nodistro main\n", undefined],
])("the mirror is read from %s", (_, text, mirror) => {
  expect(mirrorIn(text)).toBe(mirror);
});
