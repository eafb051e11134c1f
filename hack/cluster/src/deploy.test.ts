import { expect, test } from "bun:test";

import { imageValues } from "./deploy.ts";

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
