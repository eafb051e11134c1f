/** What a user can do after the demo: commands, each with an explanation where it needs one. Pure. */

export interface Demonstrated {
  readonly name: string;
  readonly namespace: string;
  readonly kubeconfig: string;
  /** Whether `make cluster-down` would stop the cluster. */
  readonly isOwnCluster: boolean;
}

const consolePort = 8001;

/** From source, so that nothing has to be built or installed. */
export const consoleCommand = (kubeconfig: string): string =>
  `node_modules/.bin/bun packages/cli/src/main.ts ui --port=${consolePort} --kubeconfig=${kubeconfig}`;

/** The complete address has a token, which only the command knows. */
const consoleStep = (kubeconfig: string): string =>
  `${consoleCommand(kubeconfig)}   # the console, at http://127.0.0.1:${consolePort}: open the address with a token that it prints`;

export function nextSteps({ name, namespace, kubeconfig, isOwnCluster }: Demonstrated): string[] {
  return [
    `kubectl get stacks,workspaces,updates --namespace ${namespace}`,
    `kubectl describe stack ${name} --namespace ${namespace}`,
    `kubectl logs ${name}-workspace-0 --namespace ${namespace}`,
    consoleStep(kubeconfig),
    `kubectl delete stack ${name} --namespace ${namespace}   # destroys its resources, then deletes it`,
    "make demo EXAMPLE=structured-config                   # another example; see examples/",
    ...(isOwnCluster ? ["make cluster-down                                     # stops the cluster"] : []),
  ];
}
