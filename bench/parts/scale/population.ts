/** Copies of a Stack at rest and of its finished Update. Pure, except for random UIDs. */
import { stacks, updates } from "@pko/operator";
import type { KubeObject } from "@pko/kube";

import type { StoredObject } from "./etcd.ts";

export interface IdleStack {
  readonly stack: KubeObject;
  readonly update: KubeObject;
}

export interface Population {
  readonly template: IdleStack;
  readonly namespaces: readonly string[];
  readonly count: number;
}

export interface Copy {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export function copiesOf({ namespaces, count }: Population): Copy[] {
  return Array.from({ length: count }, (_, index) => ({
    namespace: namespaces[index % namespaces.length] ?? "",
    name: `stack-${String(index).padStart(5, "0")}`,
    uid: crypto.randomUUID(),
  }));
}

export function* stackObjects({ template }: Population, copies: readonly Copy[]): Generator<StoredObject> {
  const text = stored(template.stack);
  for (const copy of copies) yield { resource: stacks, object: replaced(text, renaming(template, copy)) };
}

/** `each` for every Stack. The last one is the one that the status of the Stack names. */
export function* updateObjects(
  { template }: Population,
  copies: readonly Copy[],
  each: number,
): Generator<StoredObject> {
  const text = stored(withRun(template.update));
  const { name: last = "", uid = "" } = template.update.metadata;
  for (const copy of copies) {
    for (let index = 0; index < each; index++) {
      const suffix = index === each - 1 ? [] : [[last, `${copy.name}-${hex(12)}`] as const];
      const own = [
        [uid, crypto.randomUUID()],
        [podUid, crypto.randomUUID()],
        [permalink, `${permalink.slice(0, -1)}${index + 1}`],
      ];
      const names = [...suffix, ...renaming(template, copy), ...own];
      yield { resource: updates, object: replaced(text, names as Renaming) };
    }
  }
}

type Renaming = readonly (readonly [from: string, to: string])[];

function renaming({ stack }: IdleStack, { namespace, name, uid }: Copy): Renaming {
  const { metadata } = stack;
  return [
    [metadata.uid ?? "", uid],
    [metadata.namespace ?? "", namespace],
    [metadata.name ?? "", name],
  ];
}

const podUid = "00000000-0000-4000-8000-000000000000";
const permalink = "https://app.pulumi.com/organization/project/dev/updates/1";

/** What the simulator does not report, and a run in a pod does. */
function withRun(update: KubeObject): KubeObject {
  const { status = {} } = update as KubeObject & { status?: object };
  return Object.assign({}, update, { status: { ...status, podUid, permalink } });
}

/** Without managed fields, which the operator drops, and which take much memory in the API server. */
function stored({ metadata, ...rest }: KubeObject): string {
  const { resourceVersion: _version, managedFields: _fields, ...others } = metadata;
  return JSON.stringify({ ...rest, metadata: others });
}

function replaced(text: string, names: Renaming): KubeObject {
  return JSON.parse(names.reduce((result, [from, to]) => result.replaceAll(from, to), text)) as KubeObject;
}

const hex = (length: number): string => crypto.randomUUID().replaceAll("-", "").slice(0, length);
