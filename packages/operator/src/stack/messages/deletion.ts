/** The deletion of the Stack or of its namespace, and rejected writes. */
import { timestamp } from "@pko/kube";

import type { Rejection } from "../../shared/objects/rejections.ts";

/** A deletion cannot be reverted, so the message shows how to finish it in both ways. */
export function deletionProtected(wantsDestroy: boolean): string {
  const remedy = wantsDestroy
    ? "To destroy its resources and delete the Stack, set spec.protect to false; to keep them, set spec.destroyOnFinalize to false first."
    : "To delete the Stack and keep its resources, set spec.protect to false.";
  return `The Stack is being deleted although spec.protect is true, so nothing is destroyed and the Stack is kept. ${remedy}`;
}

export const garbageCollector = "the garbage collector";
/** The deletion of a namespace cannot be reverted, and no destroy can run in it. */
export const namespaceTerminating =
  "The namespace is being deleted, so nothing new can be created in it, and no destroy can run. To delete the Stack and keep " +
  "its resources, set spec.destroyOnFinalize to false; to destroy them afterwards, create the Stack in another namespace.";
export const writeRejected = (explanation: string): string => `The API server rejected a request: ${explanation}`;

export function rejection({ kind, explanation }: Rejection): string {
  switch (kind) {
    case "namespaceTerminating":
      return namespaceTerminating;
    case "invalid":
      return explanation;
    case "denied":
      return writeRejected(explanation);
  }
}

export const workspaceInUse = (updateName: string): string =>
  `The Stack is not deleted yet, because Update ${updateName} runs in its Workspace; to cancel it, delete Update ${updateName}.`;

export const endUnreported = (updateName: string, until: number): string =>
  `The Stack is deleted when the forge shows the end of Update ${updateName}, at the latest at ${timestamp(until)}.`;

export const reportOf = (updateName: string): string => `the report about Update ${updateName}`;
