/** `logs`: what Pulumi writes, from the log of the workspace pod; or what the Update has kept of it. */
import { podNameOf, pulumiContainer, workspaceNameOf, type Stack, type Update } from "@pko/api";
import { isNotFound, podLogs } from "@pko/kube";

import { argument, flag, type Command, type Input } from "../command.ts";
import type { Context } from "../context.ts";
import { notFound } from "../errors.ts";
import { stacks, updates } from "../kinds.ts";
import { printable } from "../output/wrap.ts";
import { contentOf, findRecord, stackNameIn } from "../runs/records.ts";
import { seenValue } from "../visibility.ts";
import { LogFormatter } from "./log-lines.ts";
import { updatesOf } from "./history.ts";

export const logs: Command = {
  name: "logs",
  summary: "Print the log of a Stack's workspace, or of one update",
  details:
    "If the pod no longer exists, prints what the Update or its record has kept: the beginning and the end of a long output, or the events of the run. Messages of the agent are shown in brackets, and events of runs are left out (see watch); --raw prints every line as it is.",
  group: "See",
  args: [
    {
      name: "stack-or-update",
      description: "The name of a Stack or an Update.",
      required: true,
      completion: "stack-or-run",
    },
  ],
  options: [
    { flags: "-f, --follow", description: "Continue with what is written from now on." },
    { flags: "--raw", description: "Print every line as it is in the pod's log." },
  ],
  async run(context, input) {
    const target = await findTarget(context, argument(input));
    if (!(await printPodLog(context, input, target))) await printKept(context, target);
    return undefined;
  },
};

type Target =
  | { readonly kind: "stack"; readonly stack: Stack; readonly workspace: string }
  /** An Update, or only its record. */
  | { readonly kind: "run"; readonly uid: string; readonly workspace: string; readonly output: LastOutput };

async function findTarget(context: Context, name: string): Promise<Target> {
  const { client, namespace } = context;
  const stack = await client.find(stacks, { namespace, name });
  if (stack) return { kind: "stack", stack, workspace: workspaceNameOf(name) };
  const update = await client.find(updates, { namespace, name });
  if (update) {
    const { metadata, spec } = update;
    return { kind: "run", uid: metadata.uid ?? "", workspace: spec?.workspaceName ?? "", output: outputOf(update) };
  }
  const record = seenValue(await findRecord(context, name));
  if (record) {
    const { updateUid: uid, workspaceName = workspaceNameOf(stackNameIn(record)) } = record.record;
    return { kind: "run", uid, workspace: workspaceName, output: { name, text: undefined } };
  }
  const fix = `To list them: kubectl get stacks,updates,updaterecords --namespace ${namespace}`;
  throw notFound(`There is no Stack and no Update ${name} in namespace ${namespace}, and no record of one.`, fix);
}

const cutText =
  "The beginning of a run is missing: the log was rotated. To see its record: kubectl pulumi show UPDATE\n";

/** False if the pod does not exist. */
async function printPodLog(context: Context, input: Input, target: Target): Promise<boolean> {
  const { credentials, namespace, io } = context;
  const ref = { namespace, name: podNameOf(target.workspace) };
  const follow = flag(input, "follow");
  const options = { container: pulumiContainer, signal: io.signal, ...(follow && { follow }) };
  const formatter = new LogFormatter({
    raw: flag(input, "raw"),
    ...(target.kind === "run" && { run: target.uid }),
  });
  let [isEmpty, isCutShown] = [true, false];
  const print = (text: string): void => {
    if (formatter.isCut && !isCutShown) io.err(cutText);
    isCutShown = formatter.isCut;
    if (text === "") return;
    isEmpty = false;
    io.out(text);
  };
  try {
    for await (const chunk of podLogs(credentials, ref, options)) {
      print(formatter.format(chunk));
      if (formatter.isEnded) break;
    }
    print(formatter.end());
  } catch (error) {
    if (io.signal.aborted) return true;
    if (!isNotFound(error)) throw error;
  }
  // The pod of another run has nothing of this one.
  return !isEmpty || (target.kind === "stack" && follow);
}

/** The output that the Update has kept; of a run that succeeded, the events of its record. */
async function printKept(context: Context, target: Target): Promise<void> {
  const { io } = context;
  const { name, text: kept } = await lastOutput(context, target);
  const text = kept ?? (name === undefined ? undefined : await recordedText(context, name));
  if (text === undefined) {
    const fix = "The workspace has no pod, and neither an Update nor a record has its output.";
    throw notFound("No log is available.", fix);
  }
  io.err(`The workspace has no pod; this is what ${name ?? "the last update"} has kept.\n`);
  io.out(printable(text.endsWith("\n") ? text : `${text}\n`));
}

interface LastOutput {
  readonly name: string | undefined;
  readonly text: string | undefined;
}

async function lastOutput(context: Context, target: Target): Promise<LastOutput> {
  if (target.kind === "run") return target.output;
  const [newest] = await updatesOf(context, target.workspace);
  const { name, stdout } = target.stack.status?.lastUpdate ?? {};
  const own = newest ? outputOf(newest) : { name, text: undefined };
  return { name: own.name, text: own.text ?? stdout?.text };
}

const outputOf = ({ metadata, status }: Update): LastOutput => ({ name: metadata.name, text: status?.stdout?.text });

async function recordedText(context: Context, updateName: string): Promise<string | undefined> {
  const record = seenValue(await findRecord(context, updateName));
  const content = record && (await contentOf(record));
  if (!content) return undefined;
  const { eventLine } = await import("../watch/event-lines.ts");
  return content.events.flatMap((event) => eventLine(event) ?? []).join("\n") || undefined;
}
