/** The version of the operator, its image and its chart. It is defined only here. */
import { gt, valid } from "semver";

export const version = "3.0.0";

export const imageRegistry = "docker.io";
export const imageRepository = "pulumi/pulumi-kubernetes-operator";
export const imageTag = `v${version}`;
export const operatorImage = `${imageRegistry}/${imageRepository}:${imageTag}`;

/** Whether version `a` is newer than `b` by semantic versioning; false if either is not a version. */
export function isNewer(a: string, b: string): boolean {
  return valid(a) !== null && valid(b) !== null && gt(a, b);
}
