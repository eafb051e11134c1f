/** The steps that read what the rules need next. Secrets are never watched, so they are read only then. */
import type { Program } from "@pko/api";
import { refKey, type Store } from "@pko/kube";

import type { OperatorCa } from "../../agents/agents.ts";
import { readCertificate, readObjects } from "../observe/inputs.ts";
import { buildInputs, draftPod } from "../pod/build-inputs.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { Step } from "../steps.ts";
import type { WorkspaceContext, WorkspacePerformed, Writer } from "./owned.ts";

interface InputReader extends Writer {
  readonly programs: Store<Program>;
  readonly settings: WorkspaceSettings;
}

export async function readInputs(
  { client, programs, settings }: InputReader,
  { spec: normal }: Extract<Step, { kind: "readInputs" }>,
  { view, signal }: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const { source, namespace } = normal;
  const draft = draftPod({ workspace: view.workspace, normal, settings });
  const readings = await readObjects({ client, namespace, signal }, draft.objects);
  const program = source.kind === "program" ? programs.get(refKey({ namespace, name: source.name })) : undefined;
  return { kind: "replan", facts: { inputs: buildInputs(draft, { readings, ...(program && { program }) }) } };
}

export async function assessCertificate(
  { client, ca }: Writer & { readonly ca: Pick<OperatorCa, "assess"> },
  { view, signal }: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const certificate = await ca.assess(await readCertificate({ client, signal }, view.workspace));
  return { kind: "replan", facts: { certificate } };
}
