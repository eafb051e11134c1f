import { expect, test } from "bun:test";

import { imageValues } from "./deploy.ts";
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
