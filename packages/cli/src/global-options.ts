/** The options of every command. */
import type { Option } from "./command.ts";
import { outputFormats } from "./context.ts";

export const globalOptions: readonly Option[] = [
  {
    flags: "-n, --namespace <name>",
    description: "The namespace. By default that of the context.",
    completion: "namespace",
  },
  { flags: "-A, --all-namespaces", description: "All namespaces, for commands that list." },
  { flags: "--context <name>", description: "The context of the kubeconfig.", completion: "context" },
  { flags: "--kubeconfig <path>", description: "The kubeconfig. By default KUBECONFIG, then ~/.kube/config." },
  {
    flags: "--operator-namespace <name>",
    description: "The operator's namespace, if it cannot be found.",
    completion: "namespace",
  },
  { flags: "-o, --output <format>", description: "text, json or yaml.", completion: outputFormats },
];
