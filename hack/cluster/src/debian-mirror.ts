/** The Debian mirror in this machine's apt configuration, in either of the two formats. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** DEBIAN_MIRROR takes precedence, for machines with another distribution. */
export function debianMirror(apt = "/etc/apt"): string | undefined {
  const given = process.env["DEBIAN_MIRROR"];
  if (given !== undefined) return given;
  for (const text of sourceFiles(apt)) {
    const mirror = mirrorIn(text);
    if (mirror !== undefined) return mirror;
  }
  return undefined;
}

/** The first source of the distribution itself, not of security updates or third parties. */
export function mirrorIn(text: string): string | undefined {
  const lines = text.split("\n").filter((line) => !line.trimStart().startsWith("#"));
  const urls = lines.flatMap((line) => {
    const [, deb822] = /^URIs:\s*(\S+)/.exec(line) ?? [];
    const [, oneLine] = /^deb\s+(?:\[[^\]]*\]\s+)?(\S+)/.exec(line) ?? [];
    return deb822 ?? oneLine ?? [];
  });
  return urls.find((url) => /\/debian\/?$/.test(url));
}

function sourceFiles(apt: string): string[] {
  const read = (path: string): string[] => {
    try {
      return [readFileSync(path, "utf8")];
    } catch {
      return [];
    }
  };
  const folder = join(apt, "sources.list.d");
  const names = read(join(apt, "sources.list"));
  try {
    return [
      ...names,
      ...readdirSync(folder)
        .toSorted()
        .flatMap((name) => read(join(folder, name))),
    ];
  } catch {
    return names;
  }
}
