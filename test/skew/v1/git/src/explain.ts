/** Why git has failed, told by what it printed. What a server said is not repeated: it could be anything. */

export type GitTrouble =
  /** The server refuses the credentials, or wants some. */
  | "credentials"
  /** The server is not the one that is trusted: its host key or certificate is unknown, or another. */
  | "untrusted"
  | "noRepository"
  /** The repository is there, and what was asked for is not in it. */
  | "noRevision"
  /** The server told git to look elsewhere. */
  | "moved"
  /** The network, a server that is ill, or something that we have no words for. */
  | "other";

interface GitExplanation {
  readonly trouble: GitTrouble;
  readonly message: string;
}

const inSecret = "in the Secret of the ssh key";

const explanations: readonly (readonly [RegExp, GitTrouble, string])[] = [
  [/error: 30[12378]/, "moved", "the repository's address leads elsewhere"],
  [
    /no user exists for uid/i,
    "other",
    "ssh does not run here: the image has no user of the uid that it runs as; add one to its /etc/passwd",
  ],
  [
    /identification has changed/i,
    "untrusted",
    `the ssh host shows another key than known_hosts has for it: if the host was given a new key, correct known_hosts ${inSecret}`,
  ],
  [
    /host key verification failed|no .* host key is known/i,
    "untrusted",
    `the ssh host's key is not in known_hosts: put the host's line of known_hosts under the key known_hosts ${inSecret}`,
  ],
  [
    /certificate (problem|verification failed)|certificate subject name/i,
    "untrusted",
    "the server's certificate is not one that is trusted: put its authority's certificate under the key ca.crt into the Secret of the credentials, or add it to the authorities that the operator and the workspace trust",
  ],
  [
    /incorrect passphrase|invalid format|error in libcrypto|load key/i,
    "credentials",
    "the ssh key cannot be used: it is not a private key, or the key's passphrase is another",
  ],
  // A passphrase that opens nothing looks the same to ssh as a key that is not offered.
  [
    /permission denied \(publickey/i,
    "credentials",
    "the server refuses the ssh key, or the key's passphrase is another",
  ],
  [
    /authentication failed|could not read (username|password)|terminal prompts disabled|error: 40[13]|access denied|permission denied/i,
    "credentials",
    "the repository refuses the credentials",
  ],
  [
    /not our ref|unadvertised object|couldn't find remote ref|remote ref does not exist/i,
    "noRevision",
    "the repository does not have what was asked for",
  ],
  [
    /repository .*not found|error: 404|does not (appear to be|exist)|not a git repository/i,
    "noRepository",
    "the repository is not there, or may not be seen with these credentials",
  ],
];

/** Undefined for trouble that we have no words for. */
export function explainGit(stderr: string): GitExplanation | undefined {
  const found = explanations.find(([pattern]) => pattern.test(stderr));
  return found && { trouble: found[1], message: found[2] };
}
