/** Host names are looked up in network and mount namespaces of their own, with a DNS server that does not respond to some of them. */
import { expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { run } from "@pko/cluster";

import type { Lookups } from "./lookups.ts";

test("names for which no DNS server responds do not delay the lookups of others, and a broken search domain hides none", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pko-dns-"));
  try {
    await writeFile(join(folder, "resolv.conf"), "nameserver 127.0.0.1\nsearch example.com broken\noptions ndots:5\n");
    await writeFile(join(folder, "hosts"), "192.0.2.7 alias.internal\n");
    const mounts = ["resolv.conf", "hosts"].map((file) => `mount --bind ${join(folder, file)} /etc/${file}`);
    const script = ["ip link set lo up", ...mounts, 'exec "$0" "$1"'].join(" && ");
    const lookups = join(import.meta.dir, "lookups.ts");
    const output = await run(["unshare", "--mount", "--net", "sh", "-c", script, process.execPath, lookups]);
    expect(JSON.parse(output) as Lookups).toEqual({
      absolute: ["192.0.2.1"],
      searched: ["192.0.2.1"],
      fromHostsFile: ["192.0.2.7"],
      unknown: "rejected",
      endedBefore: 0,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 180_000);
