/** The operator that is already on the cluster: the demo uses it, or stops, and replaces only that of an earlier demo. Pure. */
import {
  containersOf,
  describeOperator,
  installedOperators,
  isScaledToZero,
  manifestDeployment,
  operatorNamespace,
  servedNamespaces,
  type InstalledOperator,
  type OperatorDeployment,
} from "@pko/cluster";

/** A hash of what a demo has applied, or `unfinishedInstallation`. */
export const hashAnnotation = "pulumi.com/demo-manifest";
export const unfinishedInstallation = "installing";

export type OperatorForDemo =
  /** None, or that of an earlier demo. */
  | { readonly kind: "to install" }
  | { readonly kind: "used"; readonly explanation: string }
  | { readonly kind: "unusable"; readonly problem: string };

/** `deployments` are those of all namespaces; `namespace` is that of the example. */
export function operatorForDemo(deployments: readonly OperatorDeployment[], namespace: string): OperatorForDemo {
  const found = installedOperators(deployments).filter((operator) => !isOfDemo(operator));
  const [first] = found;
  if (first === undefined) return { kind: "to install" };
  const goOperator = found.find(({ isGo }) => isGo);
  const usable = found.find((operator) => problemWith(operator, namespace) === undefined);
  if (goOperator === undefined && usable !== undefined) {
    const { name, namespace } = usable;
    return { kind: "used", explanation: `using the operator that is installed: Deployment ${name} in ${namespace}` };
  }
  const unusable = goOperator ?? first;
  return { kind: "unusable", problem: `${describeOperator(unusable)}, ${problemWith(unusable, namespace)}` };
}

/** Why the demo can neither use it nor install another one beside it. */
function problemWith(operator: InstalledOperator, namespace: string): string | undefined {
  if (operator.isGo) {
    return "and the demo would install a second one, so that both change the same Stacks: use another cluster, or see docs/migration.md to switch";
  }
  if (isScaledToZero(operator)) {
    const { name, namespace } = operator;
    return `but it is scaled to zero: kubectl scale deployment ${name} --namespace ${namespace} --replicas=1 starts it`;
  }
  const served = servedNamespaces(operator);
  if (served.length === 0 || served.includes(namespace)) return undefined;
  return `but it does not serve namespace ${namespace}: select one that it serves in your kubeconfig (${served.join(", ")}), or use another cluster`;
}

function isOfDemo({ isGo, name, namespace, deployment }: InstalledOperator): boolean {
  if (isGo || name !== manifestDeployment || namespace !== operatorNamespace) return false;
  return deployment.metadata.annotations?.[hashAnnotation] !== undefined || containersOf(deployment).some(isBuiltHere);
}

/** The tag of an image that a demo has built is a hash. */
const isBuiltHere = ({ image = "" }: { readonly image?: string }): boolean =>
  /\/pulumi-kubernetes-operator:[0-9a-f]{12}$/.test(image);
