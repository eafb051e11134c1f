/** `trace`: from a Kubernetes object, a resource ID or a URN to the Stack and the commit that created it. */
import { argument, type Command } from "../command.ts";

export const trace: Command = {
  name: "trace",
  summary: "Find the Stack and the commit that created an object or a resource",
  details:
    "Takes KIND/NAME of a Kubernetes object, such as deployment/web, the ID that a provider gave a resource, or a URN. Searches the records of the namespace, or with -A of all namespaces; -n is then the namespace of the object. An object without a match is followed to its owners, for example from a Pod to its Deployment.",
  group: "See",
  allNamespaces: "and-namespace",
  args: [{ name: "object", description: "KIND/NAME, the ID of a resource, or a URN.", required: true }],
  async run(context, input) {
    const { traceReport } = await import("../runs/trace-report.ts");
    return await traceReport(context, argument(input));
  },
};
