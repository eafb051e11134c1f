/** The operator that is already on a cluster, by its Deployment. Pure. */

/** What is read of a Deployment. */
export interface OperatorDeployment {
  readonly metadata: { readonly name?: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: { readonly template: { readonly spec?: { readonly containers: readonly OperatorContainer[] } } };
}

interface OperatorContainer {
  readonly image?: string;
  readonly env?: readonly { readonly name: string }[];
}

export const operatorNamespace = "pulumi-kubernetes-operator";
/** The names of the Deployment in the manifest, and in the chart. Those of the Go operator are the same. */
export const manifestDeployment = "controller-manager";
export const chartDeployment = `${operatorNamespace}-${manifestDeployment}`;

/** Those of an operator, this one or the Go operator, among the Deployments of the namespace. */
export const operatorDeployments = <Deployment extends OperatorDeployment>(
  deployments: readonly Deployment[],
): readonly Deployment[] =>
  deployments.filter(({ metadata }) => [manifestDeployment, chartDeployment].includes(metadata.name ?? ""));

/** A clause that names the Go operator, which must not be replaced unless the user wants that. Undefined if there is none. */
export function describeGoOperator(deployments: readonly OperatorDeployment[]): string | undefined {
  const foreign = operatorDeployments(deployments).find((deployment) => !isThisOperator(deployment));
  return (
    foreign &&
    `the Go operator is installed on this cluster (Deployment ${foreign.metadata.name} in namespace ${operatorNamespace})`
  );
}

export const containersOf = ({ spec }: OperatorDeployment): readonly OperatorContainer[] =>
  spec?.template.spec?.containers ?? [];

const isThisOperator = (deployment: OperatorDeployment): boolean =>
  containersOf(deployment).some(({ env = [] }) => env.some(({ name }) => name.startsWith("OPERATOR_")));
