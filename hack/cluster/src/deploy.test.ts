import { describe, expect, test } from "bun:test";

import { imageValues, isHelmTooOld, obstacleToDeploy } from "./deploy.ts";
import { replaceImage } from "./operator-image.ts";

const digest = `sha256:${"0".repeat(64)}`;

test.each([
  ["docker.io/pulumi/operator:dev", ["registry=docker.io", "repository=pulumi/operator", "tag=dev"]],
  ["pulumi/operator:v3.0.0", ["registry=docker.io", "repository=pulumi/operator", "tag=v3.0.0"]],
  ["registry:5000/team/operator", ["registry=registry:5000", "repository=team/operator"]],
  ["localhost/operator:1", ["registry=localhost", "repository=operator", "tag=1"]],
  [`ghcr.io/acme/operator@${digest}`, ["registry=ghcr.io", "repository=acme/operator", `digest=${digest}`]],
])("chart values for the image %s", (image, values) => {
  expect(imageValues(image)).toEqual(values.map((value) => `--set-string=image.${value}`));
});

test("every occurrence of the released image is replaced by another", () => {
  const text =
    "image: docker.io/pulumi/pulumi-kubernetes-operator:v1.0.0-rc.1\nvalue: docker.io/pulumi/pulumi-kubernetes-operator:v1.0.0-rc.1";
  expect(replaceImage(text, "mine:1")).toBe("image: mine:1\nvalue: mine:1");
});

test.each([
  ["v2.17.0", true],
  ["v3.9.4", true],
  ["v3.16.4+g7877b45", true],
  ["v3.17.0+g301108e", false],
  ["v3.20.1", false],
  ["v4.0.0", false],
  ["<no value>", false],
])("Helm %s is too old: %p", (version, isTooOld) => expect(isHelmTooOld(version)).toBe(isTooOld));

describe("an operator that is already on the cluster", () => {
  const home = "pulumi-kubernetes-operator";
  const fromChart = `${home}-controller-manager`;

  interface Fields {
    readonly isGo?: boolean;
    readonly name?: string;
    readonly namespace?: string;
    readonly release?: string;
    readonly serves?: string;
    readonly replicas?: number;
  }
  const deployment = ({ isGo = false, name = fromChart, namespace = home, ...fields }: Fields) => {
    const { release, serves, replicas = 1 } = fields;
    const env = [
      ...(isGo ? [] : [{ name: "OPERATOR_AGENT_IMAGE", value: "any" }]),
      ...(serves === undefined ? [] : [{ name: "OPERATOR_WATCH_NAMESPACES", value: serves }]),
    ];
    const containers = [{ image: "docker.io/pulumi/pulumi-kubernetes-operator:any", env }];
    const annotations = release === undefined ? {} : { "meta.helm.sh/release-name": release };
    return { metadata: { name, namespace, annotations }, spec: { replicas, template: { spec: { containers } } } };
  };
  const elsewhere = { name: `pko-${fromChart}`, namespace: "pulumi-system" };
  const all = { isReplacing: false, namespaces: [] as readonly string[] };
  const replacing = { ...all, isReplacing: true };
  const teamA = { ...all, namespaces: ["team-a"] };

  test.each<[string, Fields, typeof all]>([
    ["it is this one, from the chart", {}, all],
    ["it is this one, from the quickstart", { name: "controller-manager" }, all],
    ["it is this one, with another name in the same release", { name: "mine", release: home }, all],
    ["it is this one, and serves another namespace", { ...elsewhere, serves: "team-b" }, teamA],
    ["it is the Go operator, and is to be replaced", { isGo: true }, replacing],
    ["it is the Go operator elsewhere, and does not run", { isGo: true, ...elsewhere, replicas: 0 }, replacing],
  ])("is no obstacle if %s", (_, fields, request) => {
    expect(obstacleToDeploy([deployment(fields)], request)).toBeUndefined();
  });

  test.each<[string, Fields, typeof all]>([
    ["this one, in another release", { name: "mine", release: "pko" }, all],
    ["this one, in another namespace", elsewhere, all],
    ["this one, in another namespace, even to replace the Go operator", elsewhere, replacing],
    ["this one, for the same namespace", { ...elsewhere, serves: "team-b,team-a" }, teamA],
    ["this one, for one of all namespaces", { ...elsewhere, serves: "team-b" }, all],
    ["the Go operator, in another namespace", { isGo: true, ...elsewhere }, all],
    ["the Go operator, in another namespace, for one namespace", { isGo: true, ...elsewhere }, teamA],
    ["the Go operator, in another namespace, to be replaced", { isGo: true, ...elsewhere }, replacing],
    ["the Go operator, in another namespace, scaled to zero", { isGo: true, ...elsewhere, replicas: 0 }, all],
  ])("must not get a second one beside it if it is %s", (_, fields, request) => {
    const { name = fromChart, namespace = home } = fields;
    const obstacle = obstacleToDeploy([deployment({}), deployment(fields)], request);
    expect(obstacle).toContain(
      `(Deployment ${name} in namespace ${namespace}), and make deploy would install a second`,
    );
  });

  test("is not replaced without a request if it is the Go operator", () => {
    expect(obstacleToDeploy([deployment({ isGo: true })], all)).toContain("make deploy would replace it");
  });
});
