import { describe, expect, test } from "bun:test";
import { manualClock } from "@pko/kube";

import type { AgentPod, Preparations } from "./agents.ts";
import { preparations } from "./preparations.ts";

const ca = { distrusted: () => undefined, operatorCredentials: () => ({ ca: "", cert: "", key: "" }) };
const pod: AgentPod = { workspace: { namespace: "team", name: "web" }, uid: "p1", restarts: 0, ip: "10.0.0.1" };

/** A workspace of which nothing is prepared, as after a restart of the operator: each renewal wakes it. */
function subject() {
  const clock = manualClock();
  let wakes = 0;
  const preparing = preparations({ ca, clock, wake: () => wakes++ });
  return { preparing, clock, wakes: () => wakes };
}

describe("a workspace that is not prepared for a run", () => {
  test("is woken less and less often while the run is attempted every second", async () => {
    const { preparing, clock, wakes } = subject();
    const wokenAt: number[] = [];
    for (let second = 0; second <= 1200; second++) {
      const before = wakes();
      preparing.renew(pod, "run-1");
      if (wakes() > before) wokenAt.push(second);
      await clock.advance(1000);
    }
    const pauses = wokenAt.slice(1).map((at, index) => at - (wokenAt[index] ?? 0));
    expect(wokenAt[0]).toBe(0);
    // With jitter, a pause is up to a fifth shorter.
    for (const [index, pause] of pauses.entries()) {
      const longest = Math.min(300, 2 ** index);
      expect(pause).toBeGreaterThanOrEqual(longest * 0.8);
      expect(pause).toBeLessThanOrEqual(longest);
    }
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(240);
  });

  const immediate: Record<string, (preparing: Pick<Preparations, "renew" | "forget">) => void> = {
    "another run": (preparing) => preparing.renew(pod, "run-2"),
    "another pod": (preparing) => preparing.renew({ ...pod, uid: "p2" }, "run-1"),
    "another workspace": (preparing) =>
      preparing.renew({ ...pod, workspace: { namespace: "team", name: "api" } }, "run-1"),
    "a workspace that was forgotten": (preparing) => {
      preparing.forget(pod.workspace);
      preparing.renew(pod, "run-1");
    },
  };
  for (const [what, renew] of Object.entries(immediate)) {
    test(`is woken immediately for ${what}`, () => {
      const { preparing, wakes } = subject();
      preparing.renew(pod, "run-1");
      preparing.renew(pod, "run-1");
      expect(wakes()).toBe(1);
      renew(preparing);
      expect(wakes()).toBe(2);
    });
  }
});
