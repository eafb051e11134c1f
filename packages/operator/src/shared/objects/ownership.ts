/** What is reported when an object of another owner has a name that a Stack, Workspace or Update needs. */
import type { Occupant, Occupied, Owner } from "@pko/kube";

/** The object that needs the name. */
type Claimant = Pick<Owner, "kind" | "name">;

/** What happened, why, and what to do. The text is the same for the same objects, because it is compared. */
export function conflictMessage(occupied: readonly Occupied[], claimant: Claimant): string {
  const foreign = occupied.filter(({ kind }) => kind === "foreign").map(({ occupant }) => occupant);
  if (foreign.length === 0) return formerMessage(occupied);
  const remedy = `Delete or rename ${foreign.length > 1 ? "them" : "it"}, or use another name for the ${claimant.kind}`;
  return `${foreignText(foreign, claimant)} ${remedy}; this is checked again automatically.`;
}

export const isForeign = (occupied: readonly Occupied[]): boolean => occupied.some(({ kind }) => kind === "foreign");

/** What happened and why, without the remedy. */
export function foreignText(foreign: readonly Occupant[], { kind, name }: Claimant): string {
  const listed = foreign.map((occupant) => `${nameOf(occupant)} (${ownerText(occupant)})`).join(" and ");
  const [exist, were] = foreign.length > 1 ? ["exist", "were"] : ["exists", "was"];
  return `${listed} already ${exist} and ${were} not created for ${kind} ${name}, so nothing was changed.`;
}

function formerMessage(occupied: readonly Occupied[]): string {
  const listed = occupied.map(({ occupant }) => nameOf(occupant)).join(" and ");
  const { kind = "", name = "" } = occupied[0]?.occupant.owner ?? {};
  return (
    `${listed} belonged to an earlier ${kind} ${name} that is deleted; waiting for the garbage collector to delete it. ` +
    "If this takes more than a few minutes, check the kube-controller-manager of the cluster."
  );
}

const nameOf = ({ kind, namespace = "", name }: Occupant): string => `${kind} ${namespace}/${name}`;

const ownerText = ({ owner }: Occupant): string =>
  owner ? `owned by ${owner.kind} ${owner.name}` : "without an owner";

const pauses = { former: 5000, least: 15_000, most: 120_000 } as const;

/** Not all kinds are watched: their names are read again, less often the longer another owner has had them. */
export function conflictPauseMs(occupied: readonly Occupied[], sinceMs: number): number {
  if (!isForeign(occupied)) return pauses.former;
  return Math.min(pauses.most, Math.max(pauses.least, sinceMs / 4));
}

interface ConflictView {
  readonly now: number;
  readonly conflictSince?: number;
}

/**
 * Since when a name has been taken, for the next pass. The condition does not show it: its time stays the same when only its
 * reason changes.
 */
export function conflictStart(
  { now, conflictSince }: ConflictView,
  { isUnchanged, isBlocked }: { readonly isUnchanged: boolean; readonly isBlocked: boolean },
): number | undefined {
  if (isUnchanged) return conflictSince;
  return isBlocked ? (conflictSince ?? now) : undefined;
}

/** The reason of the Stalled condition of Stacks and Workspaces. */
export const ownershipConflict = "OwnershipConflict";
