/** The version of the operator, of its image and of its chart: the one place that says it. */
import { gt, valid } from "semver";

export const version = "3.0.0";

export const imageRegistry = "docker.io";
export const imageRepository = "pulumi/pulumi-kubernetes-operator";
export const imageTag = `v${version}`;
export const operatorImage = `${imageRegistry}/${imageRepository}:${imageTag}`;

/** Whether version `a` comes after `b`, by semantic versioning; never of what is no version. */
export function isNewer(a: string, b: string): boolean {
  return valid(a) !== null && valid(b) !== null && gt(a, b);
}
