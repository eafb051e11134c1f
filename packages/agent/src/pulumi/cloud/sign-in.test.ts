import { afterEach, expect, setSystemTime, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redactor } from "../../system/redact.ts";
import { createLog } from "../../system/log.ts";
import { SignIn } from "./sign-in.ts";

afterEach(() => void setSystemTime());

test.each([86_400_000, -86_400_000])(
  "uses a token for its lifetime when the wall clock jumps by %d ms",
  async (step) => {
    const folder = await mkdtemp(join(tmpdir(), "sign-in-"));
    let exchanges = 0;
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => Response.json({ access_token: `pul-${++exchanges}`, expires_in: 3600 }),
    });
    try {
      const tokenFile = join(folder, "token");
      await writeFile(tokenFile, "identity");
      const oidc = { tokenFile, organization: "acme", scope: "", expirationSeconds: 3600, credentials: folder };
      const redactor = new Redactor();
      const signIn = new SignIn({ oidc, redactor, log: createLog(redactor, () => undefined) });
      const request = {
        env: { PULUMI_BACKEND_URL: `http://127.0.0.1:${server.port}`, HOME: folder },
        backend: undefined,
        purpose: "command",
      } as const;
      expect(await signIn.ensure(request)).toMatchObject({ ok: true });
      setSystemTime(Date.now() + step);
      expect(signIn.hasExpired).toBe(false);
      expect(await signIn.ensure(request)).toMatchObject({ ok: true });
      expect(exchanges).toBe(1);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
