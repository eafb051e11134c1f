/** For tests: an SSH server on loopback that serves `git-upload-pack` to the owner of one key. */
import { spawn } from "node:child_process";
import ssh2 from "ssh2";
import type { SshKeys } from "./ssh-keys.ts";

export interface SshServer {
  readonly port: number;
  /** The line for a known_hosts file. */
  readonly knownHosts: string;
  readonly commands: string[];
  stop(): void;
}

export async function serveSsh(host: SshKeys, allowed: SshKeys): Promise<SshServer> {
  const commands: string[] = [];
  const wanted = Buffer.from(allowed.publicKey.split(" ")[1] ?? "", "base64");
  const server = new ssh2.Server({ hostKeys: [host.privateKey] }, (connection) => {
    connection.on("error", () => undefined);
    connection.on("authentication", (context) => {
      if (context.method === "publickey" && context.key?.data.equals(wanted)) context.accept();
      else context.reject(["publickey"]);
    });
    connection.on("session", (accept) => {
      const session = accept();
      session.on("env", (acceptEnv) => acceptEnv?.());
      session.on("exec", (acceptExec, _, { command }) => {
        commands.push(command);
        const path = /^git-upload-pack '(.*)'$/.exec(command)?.[1] ?? "";
        const channel = acceptExec();
        const child = spawn("git", ["upload-pack", path], { stdio: ["pipe", "pipe", "ignore"] });
        // git may end without reading everything.
        child.stdin.on("error", () => undefined);
        channel.pipe(child.stdin);
        child.stdout.pipe(channel, { end: false });
        child.on("close", (code) => {
          channel.exit(code ?? 1);
          channel.end();
        });
      });
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address();
  return { port, knownHosts: `[127.0.0.1]:${port} ${host.publicKey}`, commands, stop: () => server.close() };
}
