/** What one creation, one change and one deletion of a Stack cost the API server and the operator: it needs no cluster. */
import { run } from "@pko/cluster";

import type { Cost } from "../parts/cost/table.ts";
import { figure, type Figure, type Findings } from "../report/figures.ts";
import type { StandaloneScenario } from "./scenario.ts";

export const cost: StandaloneScenario = {
  name: "cost",
  title: "requests and CPU time of one Stack",
  async runStandalone({ sizes: { rounds } }) {
    const script = new URL("../parts/cost/main.ts", import.meta.url).pathname;
    return findings(JSON.parse(await run([process.execPath, script, `--rounds=${rounds}`, "--json"])) as Cost[]);
  },
};

/** Pure. */
export const findings = (costs: readonly Cost[]): Findings => ({ figures: costs.flatMap(figuresOf) });

function figuresOf({ title, operatorMs, apiServerMs, requests }: Cost): Figure[] {
  const id = `cost.${title}`;
  const count = (keys: readonly string[]): number => keys.reduce((sum, key) => sum + (requests[key] ?? 0), 0);
  const counted = (name: string, what: string, keys: readonly string[]): Figure[] =>
    figure({ id: `${id}.${name}`, title: `${title}: ${what}`, unit: "count" }, [count(keys)]);
  return [
    ...figure({ id: `${id}.operator`, title: `${title}: CPU time of the operator`, unit: "ms" }, [operatorMs]),
    ...figure({ id: `${id}.apiserver`, title: `${title}: CPU time of the API server`, unit: "ms" }, [apiServerMs]),
    ...counted("requests", "requests of the operator", Object.keys(requests)),
    ...counted("stack", "status writes of the Stack", ["patch stacks/status"]),
    ...counted("workspace", "status writes of the Workspace", ["patch workspaces/status"]),
    ...counted("secrets", "reads of Secrets", ["get secrets"]),
  ];
}
