import { expect, test } from "bun:test";

import { readCredentials } from "./git-credentials.ts";

type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;
const reading = (secrets: Secrets) => async (name: string) => secrets[name];
const named = { kind: "secret", name: "git" } as const;

test("a Secret with only ca.crt gives the CA of a public repository, to polling and to the Workspace", async () => {
  expect(await readCredentials(named, reading({ git: { "ca.crt": "PEM" } }))).toEqual({
    kind: "found",
    credentials: { kind: "none" },
    ca: "PEM",
    auth: { ca: { name: "git", key: "ca.crt" } },
  });
});

test("credentials in a Secret take precedence over a CA alone", async () => {
  expect(await readCredentials(named, reading({ git: { "ca.crt": "PEM", accessToken: "tok" } }))).toEqual({
    kind: "found",
    credentials: { kind: "token", token: "tok" },
    ca: "PEM",
    auth: { token: { name: "git", key: "accessToken" } },
  });
});

test("a Secret with unknown keys is reported with the keys that it may have", async () => {
  const { kind, ...rest } = await readCredentials(named, reading({ git: { other: "x" } }));
  expect(kind).toBe("missing");
  expect(rest).toEqual({
    message:
      "the Secret git has none of the keys sshPrivateKey, accessToken, username and password, or ca.crt; add the keys that the repository requires",
  });
});

test("a value with a million line breaks is read in linear time, because a tenant may set one", async () => {
  const found = await readCredentials(named, reading({ git: { accessToken: `${"\n".repeat(1_000_000)}tok\n` } }));
  expect(found.kind).toBe("found");
});
