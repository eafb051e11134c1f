/** The command by which git reaches an ssh host: one key, one list of known hosts, nothing of the user's own settings. */

interface SshCommand {
  /** Files. */
  readonly key: string;
  readonly known: string;
  readonly host: string;
  readonly port: number;
  readonly address: string;
}

/** The address that was looked at is the one dialled; the host's key is looked up under the host's name. */
export function sshCommand({ key, known, host, port, address }: SshCommand): string {
  const name = host.replaceAll(/[[\]]/g, "");
  const options = [
    `IdentityFile=${key}`,
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    `UserKnownHostsFile=${known}`,
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
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=4",
  ];
  return ["ssh", "-F", "/dev/null", ...options.flatMap((option) => ["-o", `'${option}'`])].join(" ");
}
