import { describe, expect, test } from "bun:test";

import type { AgentPod } from "./agents.ts";
import { Agreements } from "./agreements.ts";

const pod: AgentPod = { workspace: { namespace: "prod", name: "web" }, uid: "a", restarts: 1, ip: "10.0.0.1" };

describe("the version agreed on with an agent", () => {
  const cases: readonly (readonly [later: Partial<AgentPod>, isKept: boolean, why: string])[] = [
    [{}, true, "is kept for the same pod"],
    [{ ip: "10.0.0.2" }, true, "is kept whatever the pod's address"],
    [{ restarts: 0 }, true, "is kept for a caller that does not know about the restart yet"],
    [{ restarts: 2 }, false, "is not kept when the agent has restarted"],
    [{ uid: "b", restarts: 0 }, false, "is not kept when the pod is replaced"],
    [{ workspace: { namespace: "prod", name: "api" } }, false, "is not that of another workspace"],
  ];
  for (const [later, isKept, why] of cases) {
    test(why, () => {
      const agreements = new Agreements();
      const first = agreements.of(pod);
      expect(agreements.of({ ...pod, ...later }) === first).toBe(isKept);
    });
  }

  test("is forgotten with its workspace", () => {
    const agreements = new Agreements();
    const first = agreements.of(pod);
    agreements.forget(pod.workspace);
    expect(agreements.of(pod)).not.toBe(first);
  });
});
