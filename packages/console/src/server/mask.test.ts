import { expect, test } from "bun:test";

import { maskResponse, maskSecrets } from "./mask.ts";

const canary = "canary-7f3e9a";
const literal = { type: "Literal", literal: { value: canary } };
const reference = { type: "Secret", secret: { name: "s", key: "k" } };
const annotation = "kubectl.kubernetes.io/last-applied-configuration";

const stack = {
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "web", annotations: { [annotation]: `{"secrets":{"a":"${canary}"}}`, other: "kept" } },
  spec: {
    stack: "dev",
    config: { region: "eu" },
    secrets: { password: canary },
    secretsRef: { token: literal, literal, key: reference },
    gitAuth: { accessToken: literal, basicAuth: { userName: reference, password: literal } },
    envRefs: { REGION: { type: "Literal", literal: { value: "eu" } } },
  },
};
const masked = { type: "Literal", literal: { value: "[secret]" } };

test("secrets of a Stack in plain text are masked, and nothing else", () => {
  expect(maskSecrets(stack)).toEqual({
    ...stack,
    metadata: { name: "web", annotations: { other: "kept" } } as typeof stack.metadata,
    spec: {
      ...stack.spec,
      secrets: { password: "[secret]" },
      secretsRef: { token: masked, literal: masked, key: reference },
      gitAuth: { accessToken: masked, basicAuth: { userName: reference, password: masked } },
    },
  });
});

test("the items of a list are masked", () => {
  expect(JSON.stringify(maskResponse({ kind: "StackList", items: [stack, stack] }))).not.toContain(canary);
});

test("secret configuration of a Workspace is masked", () => {
  const plain = { key: "region", value: "eu" };
  const config = [plain, { key: "password", value: canary, secret: true }];
  const workspace = { kind: "Workspace", spec: { stacks: [{ name: "dev", config }] } };
  const expected = [plain, { key: "password", value: "[secret]", secret: true }];
  expect(maskSecrets(workspace)).toEqual({ ...workspace, spec: { stacks: [{ name: "dev", config: expected }] } });
});

test.each([[{ kind: "Status", code: 404 }], [{ spec: null }], [null], ["text"], [[]]])("%j stays as it is", (value) => {
  expect(maskResponse(value)).toEqual(value);
});
