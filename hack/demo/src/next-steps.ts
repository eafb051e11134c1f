/** What a user can do after the demo: commands, each with an explanation where it needs one. Pure. */

export interface Demonstrated {
  /** The Stacks of the example; the last one was changed. */
  readonly stacks: readonly string[];
  readonly namespace: string;
  /** Of the example. */
  readonly folder: string;
  /** The variables of make that select the user's own cluster; empty for the local one, which the demo has started. */
  readonly variables: string;
  /** The manifest of the operator; undefined if no demo has installed it. */
  readonly manifest?: string | undefined;
}

type Step = readonly [command: string, explanation?: string];

const consolePort = 8001;

export function nextSteps(demo: Demonstrated): string[] {
  const { stacks, namespace, variables } = demo;
  const name = stacks.at(-1) ?? "";
  return aligned([
    [`kubectl get stacks,workspaces,updates --namespace ${namespace}`],
    [`kubectl pulumi get ${name} --namespace ${namespace}`],
    [`kubectl logs ${name}-workspace-0 --namespace ${namespace}`],
    [
      `kubectl pulumi ui --port=${consolePort}`,
      // The complete address has a token, which only the command knows.
      `the console, at http://127.0.0.1:${consolePort}: open the address with a token that it prints`,
    ],
    [`make demo EXAMPLE=structured-config ${variables}`.trimEnd(), "another example; see examples/"],
    [`kubectl delete stack ${stacks.join(" ")} --namespace ${namespace}`, "destroys its resources, then deletes it"],
    ...(variables ? cleanup(demo) : [["make cluster-down", "stops the cluster"] as const]),
  ]);
}

/** What else the demo has created on the user's own cluster. */
function cleanup({ namespace, folder, manifest }: Demonstrated): Step[] {
  return [
    [`kubectl delete -f ${folder} --namespace ${namespace} --ignore-not-found`, "the other objects of the example"],
    ...(manifest
      ? [[`kubectl delete -f ${manifest}`, "the operator and its CRDs, when no Stack is left on the cluster"] as const]
      : []),
  ];
}

function aligned(steps: readonly Step[]): string[] {
  const width = Math.max(...steps.map(([command, explanation]) => (explanation ? command.length : 0)));
  return steps.map(([command, explanation]) => (explanation ? `${command.padEnd(width)}   # ${explanation}` : command));
}
