/** What a user can do after the demo: commands, each with an explanation where it needs one. Pure. */

export interface Demonstrated {
  readonly name: string;
  readonly namespace: string;
  /** Whether `make cluster-down` would stop the cluster. */
  readonly isOwnCluster: boolean;
}

const consolePort = 8001;

export function nextSteps({ name, namespace, isOwnCluster }: Demonstrated): string[] {
  return [
    `kubectl get stacks,workspaces,updates --namespace ${namespace}`,
    `kubectl pulumi get ${name} --namespace ${namespace}`,
    `kubectl logs ${name}-workspace-0 --namespace ${namespace}`,
    // The complete address has a token, which only the command knows.
    `kubectl pulumi ui --port=${consolePort}                        # the console, at http://127.0.0.1:${consolePort}: open the address with a token that it prints`,
    `kubectl delete stack ${name} --namespace ${namespace}   # destroys its resources, then deletes it`,
    "make demo EXAMPLE=structured-config                   # another example; see examples/",
    ...(isOwnCluster ? ["make cluster-down                                     # stops the cluster"] : []),
  ];
}
