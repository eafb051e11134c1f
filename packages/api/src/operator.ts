/** Names and ports on which the operator, its RBAC rules and the installed objects must agree. */

/** The Go operator uses the same Lease: the two never lead at the same time. */
export const leaseName = "operator.pulumi.com";

/** The Secret with the CA that signs the agents' certificates. The operator creates it. */
export const caSecretName = "pulumi-kubernetes-operator-ca";

/** The CA's Secret in earlier versions, owned by the chart's release. The operator reads it once and leaves it alone. */
export const formerCaSecretName = "pulumi-kubernetes-operator-authority";

/** The port on which the agent in a workspace pod serves the operator. */
export const agentPort = 50_051;
