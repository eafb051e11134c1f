import { describe, expect, test } from "bun:test";

import { covers, mergeTemplate } from "./merge.ts";

describe("merging a template", () => {
  const cases: [string, object, object, object][] = [
    ["adds a field", { a: 1 }, { b: 2 }, { a: 1, b: 2 }],
    ["replaces a field", { a: 1 }, { a: 2 }, { a: 2 }],
    ["removes a field", { a: 1, b: 2 }, { a: null }, { b: 2 }],
    ["merges nested objects", { a: { b: 1, c: 2 } }, { a: { b: 3 } }, { a: { b: 3, c: 2 } }],
    [
      "merges lists by the key of their items",
      { env: [{ name: "A", value: "1" }] },
      { env: [{ name: "B" }, { name: "A", value: "2" }] },
      { env: [{ name: "A", value: "2" }, { name: "B" }] },
    ],
    ["replaces other lists", { args: [1, 2] }, { args: [3] }, { args: [3] }],
    ["replaces another type", { a: { b: 1 } }, { a: "x" }, { a: "x" }],
  ];
  const ref = (kind: string, name: string) => ({ valueFrom: { [kind]: { name, key: "k" } } });
  const alternatives: typeof cases = [
    [
      "replaces the value of a variable by a reference",
      { env: [{ name: "A", value: "1" }] },
      { env: [{ name: "A", ...ref("secretKeyRef", "s") }] },
      { env: [{ name: "A", ...ref("secretKeyRef", "s") }] },
    ],
    [
      "replaces a reference by a value, also by an empty one",
      { env: [{ name: "A", ...ref("secretKeyRef", "s") }] },
      { env: [{ name: "A", value: "" }] },
      { env: [{ name: "A", value: "" }] },
    ],
    [
      "replaces a reference by one of another kind",
      { env: [{ name: "A", ...ref("secretKeyRef", "s") }] },
      { env: [{ name: "A", ...ref("configMapKeyRef", "c") }] },
      { env: [{ name: "A", ...ref("configMapKeyRef", "c") }] },
    ],
    [
      "takes nothing from a replaced reference",
      { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k", optional: true } } }] },
      { env: [{ name: "A", ...ref("secretKeyRef", "other") }] },
      { env: [{ name: "A", ...ref("secretKeyRef", "other") }] },
    ],
    [
      "keeps the value of a variable for which the overlay sets none",
      { env: [{ name: "A", value: "1" }] },
      { env: [{ name: "A" }] },
      { env: [{ name: "A", value: "1" }] },
    ],
    [
      "replaces the source of a volume by one of another type",
      { volumes: [{ name: "v", emptyDir: {} }, { name: "w" }] },
      { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] },
      { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }, { name: "w" }] },
    ],
    [
      "merges sources of the same type",
      { volumes: [{ name: "v", emptyDir: { sizeLimit: "1Gi" } }] },
      { volumes: [{ name: "v", emptyDir: { medium: "Memory" } }] },
      { volumes: [{ name: "v", emptyDir: { sizeLimit: "1Gi", medium: "Memory" } }] },
    ],
    [
      "keeps the source of a volume for which the overlay sets none",
      { volumes: [{ name: "v", emptyDir: {} }] },
      { volumes: [{ name: "v", configMap: null }] },
      { volumes: [{ name: "v", emptyDir: {} }] },
    ],
    [
      "keeps a directive for the Workspace's controller",
      { volumes: [{ name: "v", emptyDir: {} }] },
      { volumes: [{ name: "v", $patch: "delete" }] },
      { volumes: [{ name: "v", emptyDir: {}, $patch: "delete" }] },
    ],
    [
      "replaces the handler of a probe, and keeps its times",
      { containers: [{ name: "c", livenessProbe: { httpGet: { port: 1 }, periodSeconds: 5 } }] },
      { containers: [{ name: "c", livenessProbe: { exec: { command: ["true"] } } }] },
      { containers: [{ name: "c", livenessProbe: { exec: { command: ["true"] }, periodSeconds: 5 } }] },
    ],
    [
      "replaces the handler of a lifecycle hook, and keeps the other hook",
      { lifecycle: { postStart: { exec: {} }, preStop: { sleep: { seconds: 5 } } } },
      { lifecycle: { preStop: { httpGet: { port: 1 } } } },
      { lifecycle: { postStart: { exec: {} }, preStop: { httpGet: { port: 1 } } } },
    ],
    [
      "replaces a path in a volume by an expression",
      { volumeMounts: [{ name: "v", mountPath: "/v", subPath: "a" }] },
      { volumeMounts: [{ mountPath: "/v", subPathExpr: "$(A)" }] },
      { volumeMounts: [{ name: "v", mountPath: "/v", subPathExpr: "$(A)" }] },
    ],
    [
      "replaces a profile as a whole",
      { securityContext: { runAsUser: 5, seccompProfile: { type: "Localhost", localhostProfile: "p" } } },
      { securityContext: { seccompProfile: { type: "RuntimeDefault" } } },
      { securityContext: { runAsUser: 5, seccompProfile: { type: "RuntimeDefault" } } },
    ],
  ];
  for (const [what, base, overlay, result] of [...cases, ...alternatives]) {
    test(what, () => expect(mergeTemplate({ ...base }, { ...overlay })).toEqual({ ...result }));
  }

  test("null is covered by a missing field only", () => {
    expect(covers({ a: 1 }, { a: 1, b: null })).toBe(true);
    expect(covers({ b: 1 }, { b: null })).toBe(false);
  });
});
