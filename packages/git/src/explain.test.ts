import { describe, expect, test } from "bun:test";
import { explainGit, type GitProblem } from "./explain.ts";

/** What git, curl and ssh print. */
const printed: readonly (readonly [string, GitProblem | undefined, string])[] = [
  ["@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "untrusted", "differs"],
  [
    "No ED25519 host key is known for [h]:22 and you have requested strict checking.\nHost key verification failed.",
    "untrusted",
    "not in known_hosts",
  ],
  [
    "fatal: unable to access 'https://h/': server certificate verification failed. CAfile: x CRLfile: none",
    "untrusted",
    "ca.crt",
  ],
  ["fatal: unable to access 'https://h/': SSL certificate problem: self-signed certificate", "untrusted", "ca.crt"],
  [
    "fatal: unable to access 'https://h/': SSL: certificate subject name 'x' does not match target host name",
    "untrusted",
    "ca.crt",
  ],
  [
    'Load key "k": incorrect passphrase supplied to decrypt private key\ngit@h: Permission denied (publickey).',
    "credentials",
    "passphrase",
  ],
  ["git@h: Permission denied (publickey).", "credentials", "passphrase is wrong"],
  ["fatal: unable to access 'https://h/': The requested URL returned error: 403", "credentials", "rejects"],
  ["fatal: unable to access 'https://h/': The requested URL returned error: 301", "moved", "redirects"],
  ["fatal: repository 'https://h/' not found", "noRepository", "does not exist"],
  [
    "fatal: '/x.git' does not appear to be a git repository\nfatal: Could not read from remote repository.",
    "noRepository",
    "does not exist",
  ],
  ["fatal: couldn't find remote ref x", "noRevision", "requested revision"],
  ["No user exists for uid 65532\nfatal: Could not read from remote repository.", "other", "/etc/passwd"],
  ["ssh: connect to host h port 22: Connection refused\nfatal: Could not read from remote repository.", undefined, ""],
];

describe("explains what git printed", () => {
  for (const [text, problem, message] of printed) {
    test(text.split("\n").at(-1) ?? "", () => {
      const explained = explainGit(text);
      expect(explained?.problem).toBe(problem);
      expect(explained?.message ?? "").toContain(message);
    });
  }
});
