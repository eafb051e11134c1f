/** For tests: SSH keys of users and hosts, created by ssh-keygen. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface SshKeys {
  readonly privateKey: string;
  readonly publicKey: string;
}

export function createKey(folder: string, name: string, passphrase = ""): SshKeys {
  const path = join(folder, name);
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", passphrase, "-C", "test", "-f", path]);
  return { privateKey: readFileSync(path, "utf8"), publicKey: readFileSync(`${path}.pub`, "utf8").trim() };
}
