/** Why git failed, derived from what it printed. The server's own output is not repeated, because it is not trusted. */

export type GitProblem =
  /** The server rejects the credentials, or requires some. */
  | "credentials"
  /** The server's host key or certificate is unknown or does not match. */
  | "untrusted"
  | "noRepository"
  /** The repository exists, but not the requested revision. */
  | "noRevision"
  /** The server returned a redirect. */
  | "moved"
  /** The network, an error of the server, or an unknown problem. */
  | "other";

interface GitExplanation {
  readonly problem: GitProblem;
  readonly message: string;
}

const inSecret = "in the Secret of the SSH key";

const explanations: readonly (readonly [RegExp, GitProblem, string])[] = [
  [/error: 30[12378]/, "moved", "the repository's URL redirects to another URL"],
  [
    /no user exists for uid/i,
    "other",
    "ssh cannot run in this image, because it has no user with the UID of the container; add one to the image's /etc/passwd",
  ],
  [
    /identification has changed/i,
    "untrusted",
    `the SSH host's key differs from the one in known_hosts; if the host has a new key, update known_hosts ${inSecret}`,
  ],
  [
    /host key verification failed|no .* host key is known/i,
    "untrusted",
    `the SSH host's key is not in known_hosts; add it under the key known_hosts ${inSecret}`,
  ],
  [
    /certificate (problem|verification failed)|certificate subject name/i,
    "untrusted",
    "the server's certificate is not trusted; add its CA certificate under the key ca.crt in the Secret of the credentials, or to the CAs that the operator and the workspace trust",
  ],
  [
    /incorrect passphrase|invalid format|error in libcrypto|load key/i,
    "credentials",
    "the SSH key cannot be used, because it is not a private key or the passphrase is wrong; check the Secret of the SSH key",
  ],
  // With a wrong passphrase, ssh does not offer the key, so the server's error is the same.
  [
    /permission denied \(publickey/i,
    "credentials",
    "the server rejects the SSH key, or the passphrase is wrong; check the Secret of the SSH key and the key's access to the repository",
  ],
  [
    /authentication failed|could not read (username|password)|terminal prompts disabled|error: 40[13]|access denied|permission denied/i,
    "credentials",
    "the Git server rejects the credentials; check the Secret of the credentials and their access to the repository",
  ],
  [
    /not our ref|unadvertised object|couldn't find remote ref|remote ref does not exist/i,
    "noRevision",
    "the repository does not have the requested revision; check the branch, tag or commit",
  ],
  [
    /repository .*not found|error: 404|does not (appear to be|exist)|not a git repository/i,
    "noRepository",
    "the repository does not exist, or these credentials have no access to it; check the URL and the credentials",
  ],
];

/** Undefined for an unknown problem. */
export function explainGit(stderr: string): GitExplanation | undefined {
  const found = explanations.find(([pattern]) => pattern.test(stderr));
  return found && { problem: found[1], message: found[2] };
}
