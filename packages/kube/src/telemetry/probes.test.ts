import { expect, test } from "bun:test";
import { testReflector } from "../../testing/test-reflector.ts";
import { manualClock } from "../manual-clock.ts";
import { heartbeat, probe, reflectorCheck } from "./probes.ts";

test("a probe is ok if every check passes, and lists those that fail", () => {
  expect(probe({})).toEqual({ ok: true, text: "ok\n" });
  expect(probe({ a: () => undefined })).toEqual({ ok: true, text: "[+] a\nok\n" });
  const text = "[+] a\n[-] b: too late\nnot ok\n";
  expect(probe({ a: () => undefined, b: () => "too late" })).toEqual({ ok: false, text });
});

test("a reflector is ready when it has synced and is healthy", () => {
  const reflector = testReflector();
  const check = reflectorCheck(reflector);
  expect(check()).toBe("not synced yet");
  reflector.sync();
  expect(check()).toBeUndefined();
  reflector.healthy = false;
  expect(check()).toBe("out of sync with the API server");
});

test("timers that no longer fire and past lag are detected", async () => {
  const clock = manualClock(0);
  let lost = 0;
  const beats = heartbeat({ ...clock, monotonic: () => clock.monotonic() + lost }, 30_000);
  await clock.advance(60_000);
  expect([beats.check(), beats.takeLagMs()]).toEqual([undefined, 0]);
  lost = 5000;
  await clock.advance(2000);
  expect([beats.check(), beats.takeLagMs(), beats.takeLagMs()]).toEqual([undefined, 5000, 0]);
  beats.stop();
  await clock.advance(32_000);
  expect(beats.check()).toBe("timers are 31 s late");
  expect(clock.pending).toBe(0);
});
