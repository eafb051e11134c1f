/** The version of the operator, of its image and of its chart: the one place that says it. */

export const version = "3.0.0";

export const imageRegistry = "docker.io";
export const imageRepository = "pulumi/pulumi-kubernetes-operator";
export const imageTag = `v${version}`;
export const operatorImage = `${imageRegistry}/${imageRepository}:${imageTag}`;

/** Whether version `a` comes after `b`; each is three numbers with dots. */
export function isNewer(a: string, b: string): boolean {
  const [first, second] = [numbersOf(a), numbersOf(b)];
  const different = first.findIndex((number, index) => number !== (second[index] ?? 0));
  return different >= 0 && (first[different] ?? 0) > (second[different] ?? 0);
}

const numbersOf = (version: string): number[] => version.split(".").map((part) => Number.parseInt(part, 10) || 0);
