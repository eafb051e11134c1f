/** The poller over SSH: the key, its passphrase, and a host that must be known. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gitLister, type GitCredentials } from "@pko/operator";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createKey, type SshKeys } from "@pko/agent/testing";
import { serveSsh, type SshServer } from "../../../packages/agent/src/testing/ssh-server.ts";
import { gitServer, type GitServer } from "./git-server.ts";

const folder = mkdtempSync(join(tmpdir(), "ssh-"));
const keys = {
  host: createKey(folder, "host"),
  user: createKey(folder, "user"),
  locked: createKey(folder, "locked", "open sesame"),
  other: createKey(folder, "other"),
};
let repository: GitServer;
let commit: string;
const servers: SshServer[] = [];

beforeAll(() => {
  repository = gitServer();
  commit = repository.commit();
});

afterAll(() => {
  for (const server of servers) server.stop();
  repository[Symbol.dispose]();
  rmSync(folder, { recursive: true, force: true });
});

type Ssh = Extract<GitCredentials, { kind: "ssh" }>;

async function list(allowed: SshKeys, credentials: (server: SshServer) => Omit<Ssh, "kind">) {
  const server = await serveSsh(keys.host, allowed);
  servers.push(server);
  const lister = gitLister({ policy: { allowHttp: false, allowedAddresses: ["127.0.0.1"] }, inherited: process.env });
  const url = `ssh://git@127.0.0.1:${server.port}${repository.git("rev-parse", "--absolute-git-dir")}`;
  const remote = { url, credentials: { kind: "ssh" as const, ...credentials(server) } };
  const { signal } = new AbortController();
  return await lister.list(remote, { refs: ["refs/heads/main"], transport: lister.transportFor(remote), signal });
}

const found = () => ({ kind: "listed" as const, commits: new Map([["refs/heads/main", commit]]) });

describe("SSH accepts or rejects", () => {
  test("the right key at a known host", async () => {
    const { privateKey } = keys.user;
    expect(await list(keys.user, ({ knownHosts }) => ({ privateKey, knownHosts }))).toEqual(found());
  }, 180_000);

  test("a key with a passphrase", async () => {
    const { privateKey } = keys.locked;
    const right = { privateKey, passphrase: "open sesame" };
    expect(await list(keys.locked, ({ knownHosts }) => ({ ...right, knownHosts }))).toEqual(found());
    const wrong = { privateKey, passphrase: "open barley" };
    expect(await list(keys.locked, ({ knownHosts }) => ({ ...wrong, knownHosts }))).toMatchObject({ problem: "auth" });
  }, 180_000);

  test("another key", async () => {
    const { privateKey } = keys.other;
    const result = await list(keys.user, ({ knownHosts }) => ({ privateKey, knownHosts }));
    expect(result).toMatchObject({ kind: "failed", problem: "auth" });
  }, 180_000);

  test("a host that is not known, or has another key", async () => {
    const { privateKey } = keys.user;
    expect(await list(keys.user, () => ({ privateKey, knownHosts: "" }))).toMatchObject({ problem: "refused" });
    const result = await list(keys.user, ({ port }) => ({
      privateKey,
      knownHosts: `[127.0.0.1]:${port} ${keys.other.publicKey}`,
    }));
    expect(result).toMatchObject({ kind: "failed", problem: "refused" });
  }, 180_000);
});
