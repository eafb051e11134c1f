/** A real sshd in a pod that serves the repositories in a folder of this machine. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { SshKeys } from "@pko/agent/testing";
import { isPublished, layout, publishImage, stateRoot } from "@pko/cluster";

import { apply, kubectl } from "../harness.ts";

const containerfile = join(import.meta.dir, "sshd.Containerfile");
const mount = "/repositories";
const port = 2222;

export interface SshServer {
  url(repository: string): string;
  /** The address in the form `user@host:path`. */
  scp(repository: string): string;
  /** A known_hosts file with this key for the server. */
  knownHosts(key: SshKeys): string;
}

interface SshServerOptions {
  readonly namespace: string;
  readonly repositories: string;
  readonly host: SshKeys;
  readonly users: readonly SshKeys[];
}

/** StrictModes is off because the mounted folder is readable by all users. */
const keyOptions = ["-o", "AuthorizedKeysFile=/keys/authorized_keys", "-o", "StrictModes=no"];

export async function startSshServer({ namespace, repositories, host, users }: SshServerOptions): Promise<SshServer> {
  const image = await publishSshd();
  const authorized = users.map(({ publicKey }) => `${publicKey}\n`).join("");
  await apply(
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "sshd", namespace },
      stringData: { host: host.privateKey, authorized_keys: authorized },
    },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "sshd", namespace },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [
          {
            name: "sshd",
            image,
            args: ["-p", String(port), "-p", "22", "-h", "/keys/host", ...keyOptions],
            readinessProbe: { tcpSocket: { port }, periodSeconds: 1 },
            volumeMounts: [
              { name: "keys", mountPath: "/keys" },
              { name: "repositories", mountPath: mount, readOnly: true },
            ],
          },
        ],
        volumes: [
          {
            name: "keys",
            secret: {
              secretName: "sshd",
              defaultMode: 0o644,
              // sshd requires that only root can read the host key.
              items: [
                { key: "host", path: "host", mode: 0o600 },
                { key: "authorized_keys", path: "authorized_keys" },
              ],
            },
          },
          { name: "repositories", hostPath: { path: repositories, type: "Directory" } },
        ],
      },
    },
  );
  await kubectl(["wait", "pod/sshd", "-n", namespace, "--for=condition=Ready", "--timeout=180s"]);
  const address = await kubectl(["get", "pod", "sshd", "-n", namespace, "--output=jsonpath={.status.podIP}"]);
  return {
    url: (repository) => `ssh://git@${address}:${port}${mount}/${repository}.git`,
    scp: (repository) => `git@${address}:${mount}/${repository}.git`,
    knownHosts: ({ publicKey }) => `[${address}]:${port} ${publicKey}\n${address} ${publicKey}\n`,
  };
}

async function publishSshd(): Promise<string> {
  const hash = createHash("sha256").update(readFileSync(containerfile)).digest("hex").slice(0, 12);
  const name = `docker.io/library/sshd:${hash}`;
  const { images } = layout(stateRoot);
  if (isPublished(name, images)) return name;
  await publishImage({ name, containerfile, context: mkdtempSync(join(tmpdir(), "sshd-")) }, images);
  return name;
}
