/** The operator that is already on the cluster of the user's own: the demo uses it, or stops, but never replaces it. Pure. */
import {
  chartDeployment,
  containersOf,
  describeGoOperator,
  operatorDeployments,
  type OperatorDeployment,
} from "@pko/cluster";

/** A hash of what a demo has applied. */
export const hashAnnotation = "pulumi.com/demo-manifest";

export type Installed =
  | { readonly kind: "none" }
  | { readonly kind: "used"; readonly explanation: string }
  | { readonly kind: "foreign"; readonly problem: string };

export function installedOperator(deployments: readonly OperatorDeployment[]): Installed {
  const foreign = describeGoOperator(deployments);
  if (foreign !== undefined) {
    const problem = `${foreign}, and the demo would replace it: use another cluster, or see docs/migration.md to switch`;
    return { kind: "foreign", problem };
  }
  const found = operatorDeployments(deployments);
  // A second operator would only wait for its lease.
  if (found.some(({ metadata }) => metadata.name === chartDeployment)) {
    return { kind: "used", explanation: "using the operator that was installed with the chart" };
  }
  if (found.some(isReleased)) return { kind: "used", explanation: "using the operator that is installed, a release" };
  return { kind: "none" };
}

/** The tag of an image that a demo has built is a hash. */
function isReleased(deployment: OperatorDeployment): boolean {
  if (deployment.metadata.annotations?.[hashAnnotation] !== undefined) return false;
  return containersOf(deployment).some(({ image = "" }) => /\/pulumi-kubernetes-operator:v\d+\.\d+\.\d+$/.test(image));
}
