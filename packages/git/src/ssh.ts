/** The command that git uses to connect to an SSH host: one key, one known_hosts file, and no settings of the user. */

interface SshCommand {
  readonly keyFile: string;
  readonly knownHostsFile: string;
  readonly host: string;
  readonly port: number;
  /** The checked address of `host`. */
  readonly address: string;
}

/** ssh connects to the checked address and looks up the host key by the host's name. */
export function sshCommand({ keyFile, knownHostsFile, host, port, address }: SshCommand): string {
  const name = host.replaceAll(/[[\]]/g, "");
  const options = [
    `IdentityFile=${keyFile}`,
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    `UserKnownHostsFile=${knownHostsFile}`,
    "GlobalKnownHostsFile=/dev/null",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "VerifyHostKeyDNS=no",
    `HostKeyAlias=${port === 22 ? name : `[${name}]:${port}`}`,
    `HostName=${address}`,
    "PasswordAuthentication=no",
    "KbdInteractiveAuthentication=no",
    "ForwardAgent=no",
    "PermitLocalCommand=no",
    "ProxyCommand=none",
    "ConnectTimeout=10",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
  ];
  return ["ssh", "-F", "/dev/null", ...options.flatMap((option) => ["-o", `'${option}'`])].join(" ");
}
