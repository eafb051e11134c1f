import { describe, expect, test } from "bun:test";
import { parseRemote } from "./remote.ts";

const strict = { allowHttp: false, allowedAddresses: [] };

describe("hostile repository URLs", () => {
  const hostile: Record<string, string> = {
    "an option": "--upload-pack=touch /tmp/pwned",
    "an option in scp form": "-oProxyCommand=id:repo",
    "the ext transport": "ext::sh -c touch% /tmp/pwned",
    "the ext transport without spaces": "ext::sh%20-c%20id",
    "a helper with a short name": "fd::17",
    "a file URL": "file:///etc",
    "an absolute path": "/etc",
    "a relative path": "../other",
    "the git protocol": "git://example.com/x.git",
    "plain http": "http://example.com/x.git",
    ftp: "ftp://example.com/x.git",
    "a newline": "https://example.com/x\n--upload-pack=id",
    "a NUL": "https://example.com/x\u0000y",
    "a space": "https://example.com/x y",
    "an ssh host that is an option": "ssh://-oProxyCommand=id/x",
    "an ssh host that is an option, after a user": "ssh://git@-oProxyCommand=id/x",
    "an scp host that is an option": "git@-oProxyCommand=id:x",
    "an ssh user that is an option": "ssh://-l@example.com/x",
    "an ssh path that is an option": "ssh://git@example.com/-x",
    "an scp path that is an option": "git@example.com:--upload-pack=id",
    "a password in an ssh URL": "ssh://git:pw@example.com/x",
    "the port zero in an ssh URL": "ssh://git@example.com:0/x",
    "a shell command in an ssh host": "ssh://git@example.com;id/x",
    "a query": "https://example.com/x?service=git",
    "a fragment": "https://example.com/x#main",
    "an empty URL": "",
    "no host": "https:///x",
  };
  for (const [name, url] of Object.entries(hostile)) {
    test(name, () => {
      expect(parseRemote(url, strict).ok).toBe(false);
    });
  }
});

test("plain http is refused unless the setting allows it, and the message names the setting", () => {
  const url = "http://gitea.internal:3000/team/app.git";
  const refused = parseRemote(url, strict);
  expect(refused).toMatchObject({ ok: false });
  expect(JSON.stringify(refused)).toContain("set the chart's value git.allowHttp (the operator's flag --allow-http)");
  expect(parseRemote(url, { ...strict, allowHttp: true })).toMatchObject({ ok: true, remote: { kind: "http" } });
});

describe("repository URLs", () => {
  const good: Record<string, "http" | "ssh"> = {
    "https://github.com/pulumi/examples": "http",
    "https://gitea.internal:3000/team/app.git": "http",
    "ssh://git@github.com/pulumi/examples.git": "ssh",
    "ssh://git@[2001:db8::1]:2222/x.git": "ssh",
    "git@github.com:pulumi/examples.git": "ssh",
    "git@[2001:db8::1]:x.git": "ssh",
    "github.com:pulumi/examples.git": "ssh",
  };
  for (const [url, kind] of Object.entries(good)) {
    test(url, () => {
      expect(parseRemote(url, strict)).toMatchObject({ ok: true, remote: { kind } });
    });
  }

  test("credentials are removed from the URL", () => {
    const parsed = parseRemote("https://user:p%40ss@example.com/x", strict);
    expect(parsed).toMatchObject({ ok: true, remote: { username: "user", password: "p@ss" } });
    expect(parsed.ok && parsed.remote.kind === "http" && parsed.remote.url.href).toBe("https://example.com/x");
  });
});
