import { parseKey, type Key, type LogKeys } from "@pko/kube";

/** The keys of a log line about a poll. Any number of Stacks may share it, so the line names one and counts the others. */
export function pollLogKeys(host: string, followers: Iterable<Key>): LogKeys {
  const [first, ...others] = followers;
  if (first === undefined) return { host };
  const { namespace, name } = parseKey(first);
  return { host, namespace, stack: name, ...(others.length > 0 && { otherStacks: others.length }) };
}
