import { expect, test } from "bun:test";
import { parse } from "yaml";

import { archiveName, platforms } from "./cli-executable.ts";
import { krewManifest } from "./krew.ts";

const archives = platforms.map((platform, at) => ({ platform, path: "", sha256: String(at).repeat(64) }));

test("the manifest for krew has the checksum of each archive", async () => {
  const { spec } = parse(await krewManifest(archives)) as { spec: { platforms: { uri: string; sha256: string }[] } };
  const sums = Object.fromEntries(spec.platforms.map(({ uri, sha256 }) => [uri.split("/").at(-1) ?? "", sha256]));
  expect(sums).toEqual(Object.fromEntries(archives.map(({ platform, sha256 }) => [archiveName(platform), sha256])));
});

test("an archive that was not built is an error", async () => {
  expect(await krewManifest(archives.slice(1)).catch(String)).toContain("names an archive that was not built");
});
