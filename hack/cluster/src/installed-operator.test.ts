import { describe, expect, test } from "bun:test";

import { installedOperators, readDeployments, servedNamespaces } from "./installed-operator.ts";

interface Container {
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

const deployment = (...containers: readonly Container[]) => ({
  metadata: { name: "d", namespace: "n" },
  spec: { template: { spec: { containers } } },
});
const variables = (...names: readonly string[]) => ({ env: names.map((name) => ({ name, value: "any" })) });

const repository = "docker.io/pulumi/pulumi-kubernetes-operator";
const digest = `sha256:${"0".repeat(64)}`;
const ours = variables("OPERATOR_NAMESPACE", "OPERATOR_AGENT_IMAGE");
const proxy = { image: "envoyproxy/envoy:v1" };

test.each<[string, readonly Container[], "this" | "Go" | "none"]>([
  ["a release of this operator", [{ image: `${repository}:v3.0.0`, ...ours }], "this"],
  ["this operator with another image", [{ image: "registry.example.com/operator:dev", ...ours }], "this"],
  ["this operator with a sidecar", [proxy, { image: `${repository}:v3.0.0`, ...ours }], "this"],
  ["the console of this operator", [{ image: `${repository}:v3.0.0`, args: ["console", "--port=8080"] }], "none"],
  ["version 2 of the Go operator", [{ image: `${repository}:v2.9.0`, ...variables("POD_NAMESPACE") }], "Go"],
  ["version 1 of the Go operator", [{ image: `${repository}:v1.16.0`, ...variables("OPERATOR_NAME") }], "Go"],
  ["the Go operator with a short image name", [{ image: "pulumi/pulumi-kubernetes-operator:v2.9.0" }], "Go"],
  ["the Go operator that was loaded from an archive", [{ image: "pulumi-kubernetes-operator" }], "Go"],
  ["the Go operator with a digest", [{ image: `registry:5000/pulumi-kubernetes-operator@${digest}` }], "Go"],
  ["the Go operator with a sidecar", [proxy, { image: `${repository}:v2.9.0` }], "Go"],
  [
    "version 2 of the Go operator from a mirror",
    [{ image: "mirror.example.com/pko:2", args: ["/manager", "--program-fs-adv-addr=pko.$(POD_NAMESPACE):80"] }],
    "Go",
  ],
  [
    "version 1 of the Go operator from a mirror",
    [{ image: "mirror.example.com/pko:1", ...variables("OPERATOR_NAME", "PULUMI_INFER_NAMESPACE") }],
    "Go",
  ],
  ["an operator of others", [{ image: "example.com/operator:v1", ...variables("OPERATOR_NAMESPACE") }], "none"],
  ["a program with a similar name", [{ image: "example.com/pulumi-kubernetes-operator-ui:v1" }], "none"],
])("%s is recognized by its container", (_, containers, kind) => {
  const found = installedOperators([deployment(...containers)]).map(({ isGo }) => (isGo ? "Go" : "this"));
  expect(found).toEqual(kind === "none" ? [] : [kind]);
});

test.each([
  [undefined, []],
  ["", []],
  ["team-a,team-b", ["team-a", "team-b"]],
])("the operator with OPERATOR_WATCH_NAMESPACES=%s serves %j", (value, served) => {
  const watched = value === undefined ? [] : [{ name: "OPERATOR_WATCH_NAMESPACES", value }];
  const [operator] = installedOperators([deployment({ image: "any", env: [...ours.env, ...watched] })]);
  expect(operator && servedNamespaces(operator)).toEqual(served);
});

describe("the Deployments", () => {
  const succeeded = (name: string) => ({
    code: 0,
    stdout: JSON.stringify({ items: [{ metadata: { name } }] }),
    stderr: "",
  });
  const failed = (stderr: string) => ({ code: 1, stdout: "", stderr });
  const forbidden = failed(
    'Error from server (Forbidden): deployments.apps is forbidden: User "jane" cannot list resource "deployments" in API group "apps" at the cluster scope',
  );
  const isEverywhere = (command: readonly string[]): boolean => command.includes("--all-namespaces");

  test("of all namespaces are read", async () => {
    const found = await readDeployments(async (command) => succeeded(isEverywhere(command) ? "all" : "some"));
    expect(found).toEqual([{ metadata: { name: "all" } }]);
  });

  test("of the operator's namespace are read if the user may not list all", async () => {
    const found = await readDeployments(async (command) =>
      isEverywhere(command)
        ? forbidden
        : succeeded(command.includes("--namespace=pulumi-kubernetes-operator") ? "own" : "other"),
    );
    expect(found).toEqual([{ metadata: { name: "own" } }]);
  });

  test("are required: any other failure is reported", () => {
    expect(readDeployments(async () => failed("connection refused"))).rejects.toThrow("connection refused");
    expect(readDeployments(async () => forbidden)).rejects.toThrow("(Forbidden)");
  });
});
