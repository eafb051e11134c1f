/** The steps that change the StatefulSet alone. */
import { applyOwned, builtin, patchOwned, stepStale } from "@pko/kube";

import { truncate } from "../../shared/truncate.ts";
import { backedOffAnnotation, notStartedAnnotation, podRetriedAnnotation } from "../names.ts";
import type { Step } from "../steps.ts";
import {
  fieldManager,
  isPodFree,
  isUnused,
  ownedBy,
  statefulSetIn,
  wroteStatefulSet,
  type Performer,
  type WorkspaceContext,
  type WorkspacePerformed,
  type Writer,
} from "./owned.ts";

export async function restoreStatefulSet(
  performer: Performer,
  { uid, objects }: Extract<Step, { kind: "restoreStatefulSet" }>,
  context: WorkspaceContext,
): Promise<WorkspacePerformed> {
  if (!(await isPodFree(performer, context))) return stepStale;
  const write = { resource: builtin.statefulSets, body: objects.statefulSet };
  const target = { ...ownedBy(performer, context), uid };
  const written = await applyOwned(target, write, { fieldManager, create: false });
  // Only the store still has it, or this generation of it, because etcd was restored: the rule would apply again immediately.
  const isAhead =
    written.kind === "written" &&
    (written.object.metadata.generation ?? 0) < (context.view.statefulSet?.generation ?? 0);
  return written.kind === "absent" || isAhead ? stepStale : wroteStatefulSet(written);
}

/** All annotations of an object together may have 256 KiB. */
const longestReason = 1000;

export async function scaleToZero(
  performer: Performer,
  { uid, backedOffGeneration, notStarted }: Extract<Step, { kind: "scaleToZero" }>,
  context: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const isFree = notStarted === undefined ? isUnused(performer, context) : isPodFree(performer, context);
  if (!(await isFree)) return stepStale;
  const annotations = {
    ...(backedOffGeneration !== undefined && { [backedOffAnnotation]: String(backedOffGeneration) }),
    // Null removes that of an earlier pod.
    [notStartedAnnotation]: notStarted === undefined ? null : truncate(notStarted, longestReason),
  };
  return await patchStatefulSet(
    performer,
    { uid, body: { metadata: { annotations }, spec: { replicas: 0 } } },
    context,
  );
}

export async function retryPodCreation(
  writer: Writer,
  { uid }: Extract<Step, { kind: "retryPodCreation" }>,
  context: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const annotations = { [podRetriedAnnotation]: new Date(context.view.now).toISOString() };
  return await patchStatefulSet(writer, { uid, body: { metadata: { annotations } } }, context);
}

interface StatefulSetPatch {
  readonly uid: string;
  readonly body: { readonly metadata: object; readonly spec?: object };
}

async function patchStatefulSet(
  writer: Writer,
  { uid, body }: StatefulSetPatch,
  context: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const target = { ...ownedBy(writer, context), uid };
  return wroteStatefulSet(await patchOwned(target, statefulSetIn(context.view), { body: { ...body }, fieldManager }));
}
