import { describe, expect, test } from "bun:test";
import { normalizeWorkspace, workspaceKind, type Workspace } from "@pko/api";

import { buildInputs, draftPod, type PodDraft } from "./build-inputs.ts";
import { settings } from "../testing/views.ts";
import type { Reading } from "./references.ts";

function draft(spec: NonNullable<Workspace["spec"]>): PodDraft {
  const { apiVersion, kind } = workspaceKind;
  const workspace: Workspace = { apiVersion, kind, metadata: { name: "web", namespace: "team", uid: "w1" }, spec };
  const normal = normalizeWorkspace(workspace);
  if (!normal.ok) throw new Error(JSON.stringify(normal.problems));
  return draftPod({ workspace, normal: normal.value, settings });
}

const secret = (name: string, data: Record<string, string>): Reading => ({
  kind: "Secret",
  name,
  version: `${name}/1`,
  found: { uid: name, data },
});

const variable = (name: string, key: string) => ({ name: key, valueFrom: { secretKeyRef: { name, key } } });
const git = {
  url: "https://example.com/r.git",
  ref: "refs/heads/main",
  auth: { token: { name: "git", key: "token" } },
};
const stacks = [{ name: "dev" }];

describe("a draft names", () => {
  test("the Secrets of the pod and of the source, each once", () => {
    const env = [variable("git", "token"), variable("cloud", "KEY"), variable("cloud", "ID")];
    expect(draft({ git, stacks, env }).objects).toEqual([
      { kind: "Secret", name: "git" },
      { kind: "Secret", name: "cloud" },
    ]);
  });

  test("only those of the source if the pod's template is invalid", () => {
    const podTemplate = { spec: { hostNetwork: true } };
    const { objects } = draft({ git, stacks, env: [variable("cloud", "KEY")], podTemplate });
    expect(objects).toEqual([{ kind: "Secret", name: "git" }]);
  });
});

describe("what is built from the objects", () => {
  const readings = [secret("git", { token: "t" }), secret("cloud", { KEY: "k" })];
  const plain = draft({ git, stacks, env: [variable("cloud", "KEY")] });

  test("is a pod, and the request with the credentials", () => {
    const inputs = buildInputs(plain, { readings });
    expect(inputs).toMatchObject({ pod: { ok: true }, missing: [], requested: { kind: "complete" } });
    expect(JSON.stringify(inputs.requested)).toContain('"token":"t"');
  });

  test("is followed in the versions that were read", () => {
    expect(buildInputs(plain, { readings }).read).toEqual([
      { kind: "Secret", namespace: "team", name: "git", version: "git/1" },
      { kind: "Secret", namespace: "team", name: "cloud", version: "cloud/1" },
    ]);
  });

  const hash = (...others: readonly Reading[]): string => {
    const { pod } = buildInputs(plain, { readings: [...others, ...readings] });
    return pod.ok ? pod.objects.hash : "";
  };

  test("is another pod if a value that it reads has changed, but not for new credentials of the source", () => {
    expect(hash(secret("cloud", { KEY: "other" }))).not.toBe(hash());
    expect(hash(secret("git", { token: "other" }))).toBe(hash());
  });

  test("lacks what does not exist", () => {
    const { missing, requested } = buildInputs(plain, { readings: [] });
    expect(missing).toEqual([expect.stringContaining("there is no Secret cloud")]);
    expect(requested.kind).toBe("incomplete");
  });

  test("is only a request if the Service's template is invalid", () => {
    const serviceTemplate = { spec: { ports: [{ name: "x" }] } };
    const inputs = buildInputs(draft({ git, stacks, serviceTemplate } as never), { readings });
    expect(inputs).toMatchObject({
      pod: { ok: false, problems: [expect.stringContaining("spec.serviceTemplate.spec.ports")] },
      requested: { kind: "complete" },
    });
  });
});
