import { expect, test } from "bun:test";

import { sshCommand } from "./ssh.ts";

test("ssh waits as long for a connection as requests over https do", () => {
  const files = { keyFile: "/keys/id", knownHostsFile: "/keys/known_hosts" };
  const command = sshCommand({ ...files, host: "git.example", port: 22, address: "192.0.2.1" });
  expect(command).toContain("'ConnectTimeout=10'");
});
