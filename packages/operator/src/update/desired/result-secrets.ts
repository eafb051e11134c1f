/** The Secrets that should exist once a run has finished, and what they cannot hold. Pure. */
import { outputsSecretNameOf, type UpdatePlan } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import type { Run } from "../../agents/agents.ts";
import * as messages from "../messages.ts";
import { stdoutOf } from "../result-text.ts";
import type { FormerOutputs, UpdateView } from "../view.ts";
import { outputsSecret, planSecrets, stdoutSecret } from "./secrets.ts";

export interface ResultSecrets {
  readonly outputs?: ApiObject<Secret>;
  /** Whose Secret is used instead if it has the same content. */
  readonly formerOutputs?: FormerOutputs;
  /** The name that the Secret would have if the outputs had been read. The status names it: without a name, there are none. */
  readonly unreadOutputs?: string;
  readonly stdout?: ApiObject<Secret>;
  readonly plan?: {
    /** Its parts, in order. */
    readonly secrets: readonly ApiObject<Secret>[];
    readonly summary: Omit<UpdatePlan, "secretNames">;
  };
  /** What the Secrets do not hold, in sentences. */
  readonly problems: readonly string[];
}

export function resultSecrets(
  { update, formerOutputs }: Pick<UpdateView, "update" | "formerOutputs">,
  run: Extract<Run, { state: "finished" }>,
): ResultSecrets {
  const { result, outputs, outputsProblem, plan } = run;
  const built = outputsSecret(update, outputs);
  const stdout = stdoutOf(result);
  const isCut = stdout !== undefined && stdout.text !== result.output.tail;
  const leftOut = built?.leftOut ?? [];
  return {
    ...(built && { outputs: built.secret, ...(formerOutputs && { formerOutputs }) }),
    ...(outputsProblem !== undefined && { unreadOutputs: outputsSecretNameOf(update.metadata.name ?? "") }),
    ...(isCut && { stdout: stdoutSecret(update, result.output.tail) }),
    ...(plan && result.plan && { plan: { secrets: planSecrets(update, plan.content), summary: result.plan } }),
    problems: [
      ...(outputsProblem === undefined ? [] : [messages.outputsUnread(outputsProblem)]),
      ...(leftOut.length === 0 ? [] : [messages.outputsLeftOut(leftOut)]),
    ],
  };
}
