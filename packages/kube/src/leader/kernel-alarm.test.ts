import { expect, test } from "bun:test";

/** Runs testing/alarmed.ts, freezes it for a while if told so, and tells what it said and how it ended. */
async function run(mode: "forget" | "clear" | "renew", frozenMs = 0): Promise<{ said: string; signal: unknown }> {
  const script = new URL("../../testing/alarmed.ts", import.meta.url).pathname;
  const child = Bun.spawn([process.execPath, script, mode], { stdout: "pipe", stderr: "inherit" });
  let said = "";
  for await (const chunk of child.stdout) {
    if (said === "" && frozenMs > 0) {
      child.kill("SIGSTOP");
      await Bun.sleep(frozenMs);
      child.kill("SIGCONT");
    }
    said += new TextDecoder().decode(chunk);
  }
  await child.exited;
  return { said, signal: child.signalCode };
}

test("ends a process that does not set it anew", async () => {
  expect(await run("forget")).toEqual({ said: "set\n", signal: "SIGALRM" });
});

test("leaves alone one that does, and one that cleared it", async () => {
  expect(await Promise.all([run("renew"), run("clear")])).toEqual([
    { said: "set\nwent on\n", signal: null },
    { said: "set\nwent on\n", signal: null },
  ]);
});

test("ends a process that was frozen past it, before that does anything", async () => {
  expect(await run("renew", 1500)).toEqual({ said: "set\n", signal: "SIGALRM" });
});
