/** `support-bundle`: one file with what a bug report needs, without secrets. */
import { autoComponentLabel, pulumiContainer, version } from "@pko/api";
import { builtin, podLogs, timestamp, type KubeObject, type Resource } from "@pko/kube";
import { stringify } from "yaml";

import { clusterChecks } from "../check/cluster.ts";
import { redactObject, redactText } from "../check/redact.ts";
import { textOption, type Command } from "../command.ts";
import type { Context } from "../context.ts";
import { CliError } from "../errors.ts";
import { events, stacks, updates, workspaces } from "../kinds.ts";
import { list, text } from "../output/blocks.ts";
import { hiddenText, look } from "../visibility.ts";
import { gatherSurroundings } from "../why/gather.ts";
import { actionReport } from "./action.ts";

export const supportBundle: Command = {
  name: "support-bundle",
  summary: "Write a file with everything that a bug report needs, without secrets",
  details:
    "Contains Stacks, Workspaces, Updates, workspace pods, events, the ends of logs, and the results of check. Secrets, ConfigMaps and Programs are not read; configuration, outputs and values of variables are removed. Read the file before you share it.",
  group: "Administer",
  allNamespaces: "alone",
  options: [{ flags: "--file <path>", description: "The file to write. By default pulumi-support-TIME.tar.gz." }],
  async run(context, input) {
    const now = timestamp(context.io.now()).replaceAll(":", "");
    const path = textOption(input, "file") ?? `pulumi-support-${now}.tar.gz`;
    const { files, notes } = await collect(context);
    try {
      await Bun.Archive.write(path, { ...files, "notes.txt": `${notes.join("\n")}\n` }, { compress: "gzip" });
    } catch (error) {
      throw new CliError(`Cannot write ${path}: ${error instanceof Error ? error.message : String(error)}`);
    }
    return actionReport(context, {
      action: "support-bundle",
      name: "",
      message: `Wrote ${path} with ${Object.keys(files).length} files. Read it before you share it.`,
      details: { path, files: Object.keys(files).toSorted(), notes },
      blocks: notes.length > 0 ? [text("What is missing:"), list(notes)] : [],
    });
  },
};

interface Bundle {
  readonly files: Record<string, string>;
  readonly notes: string[];
}

async function collect(context: Context): Promise<Bundle> {
  const bundle: Bundle = { files: {}, notes: [] };
  bundle.files["version.txt"] = `kubectl-pulumi ${version}\n`;
  bundle.files["check.yaml"] = stringify(redactObject(await clusterChecks(context)));
  const { operator } = await gatherSurroundings(context);
  if (operator.kind === "present") bundle.files["operator/lease.yaml"] = stringify(redactObject(operator.lease));
  await addObjects(context, bundle, { resource: stacks, name: "stacks" });
  await addObjects(context, bundle, { resource: workspaces, name: "workspaces" });
  await addObjects(context, bundle, { resource: updates, name: "updates" });
  await addObjects(context, bundle, { resource: events, name: "events" });
  const pods = await addObjects(context, bundle, {
    resource: builtin.pods,
    name: "pods",
    labelSelector: `${autoComponentLabel}=workspace`,
  });
  for (const pod of pods) await addLog(context, bundle, { pod, container: pulumiContainer });
  if (operator.kind === "present") await addOperator(context, bundle, operator.lease.metadata.namespace ?? "");
  return bundle;
}

interface Listed<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly name: string;
  readonly labelSelector?: string;
  /** The namespace of the context if absent. */
  readonly namespace?: string;
}

async function addObjects<T extends KubeObject>(context: Context, bundle: Bundle, listed: Listed<T>): Promise<T[]> {
  const { client, allNamespaces } = context;
  const { resource, name, labelSelector } = listed;
  const namespace = listed.namespace ?? (allNamespaces ? undefined : context.namespace);
  const options = {
    ...(namespace !== undefined && { namespace }),
    ...(labelSelector !== undefined && { labelSelector }),
  };
  const seen = await look(`the ${resource.plural}`, client.list(resource, options));
  if (seen.kind === "hidden") bundle.notes.push(hiddenText(seen.hidden));
  const items = seen.kind === "seen" ? seen.value.items : [];
  bundle.files[`${name}.yaml`] = items.map((item) => stringify(redactObject(item))).join("---\n");
  return items;
}

const operatorSelector = "app.kubernetes.io/name=pulumi-kubernetes-operator";

async function addOperator(context: Context, bundle: Bundle, namespace: string): Promise<void> {
  const labelSelector = operatorSelector;
  await addObjects(context, bundle, {
    resource: builtin.deployments,
    name: "operator/deployments",
    namespace,
    labelSelector,
  });
  const pods = await addObjects(context, bundle, {
    resource: builtin.pods,
    name: "operator/pods",
    namespace,
    labelSelector,
  });
  for (const pod of pods) await addLog(context, bundle, { pod });
}

const logLines = 5000;

async function addLog(
  { credentials, io }: Context,
  bundle: Bundle,
  { pod, container }: { readonly pod: KubeObject; readonly container?: string },
): Promise<void> {
  const { namespace = "", name = "" } = pod.metadata;
  const options = { tailLines: logLines, signal: io.signal, ...(container !== undefined && { container }) };
  const read = async (): Promise<string> => {
    let log = "";
    for await (const chunk of podLogs(credentials, { namespace, name }, options)) log += chunk;
    return log;
  };
  try {
    const seen = await look(`the log of pod ${namespace}/${name}`, read());
    if (seen.kind === "hidden") bundle.notes.push(hiddenText(seen.hidden));
    if (seen.kind === "seen") bundle.files[`logs/${namespace}/${name}.log`] = redactText(seen.value);
  } catch (error) {
    // A container that has not started has no log: the API server answers with 400.
    bundle.notes.push(`No log of pod ${namespace}/${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
