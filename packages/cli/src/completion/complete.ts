/** `__complete`, which the completion scripts call. It never fails: without an answer there is no completion. */
import { builtin, kubeconfigContexts, metadataOf, type Resource } from "@pko/kube";

import type { Command, Names } from "../command.ts";
import { kubeconfigPaths, openContext, type GlobalOptions } from "../context.ts";
import { globalOptions } from "../global-options.ts";
import type { Io } from "../io.ts";
import { stacks, updateRecords, updates } from "../kinds.ts";
import { answer, expectedAfter, givenOption, type Candidate } from "./candidates.ts";

export async function complete(io: Io, commands: readonly Command[], words: readonly string[]): Promise<void> {
  const expected = expectedAfter(words, { commands, globalOptions });
  const current = words.at(-1) ?? "";
  switch (expected.kind) {
    case "candidates":
      return io.out(answer(expected.candidates, current));
    case "names":
      return io.out(answer(await names(io, expected.of, words).catch(() => []), current));
    case "nothing":
      return io.out(answer([], current));
  }
}

/** A person waits for it. */
const patienceMs = 3000;

async function names(io: Io, of: Names, words: readonly string[]): Promise<Candidate[]> {
  const given = givenOptions(words);
  if (of === "context") {
    return (await kubeconfigContexts(kubeconfigPaths(io.env, given.kubeconfig))).map((value) => ({ value }));
  }
  const { client, namespace } = await openContext(io, given);
  const lists = kinds[of].map(async (kind): Promise<string[]> => {
    const options = { timeoutMs: patienceMs, ...(kind.namespaced && { namespace }) };
    const { items } = await client.list(metadataOf(kind), options);
    return items.map(({ metadata }) => metadata.name ?? "");
  });
  // The user may be allowed to read only some of the kinds.
  const found = await Promise.allSettled(lists);
  const values = found.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  return [...new Set(values)].map((value) => ({ value }));
}

const kinds: Readonly<Record<Exclude<Names, "context">, readonly Resource[]>> = {
  stack: [stacks],
  run: [updates, updateRecords],
  "stack-or-run": [stacks, updates, updateRecords],
  namespace: [builtin.namespaces],
};

function givenOptions(words: readonly string[]): GlobalOptions {
  const [namespace, context, kubeconfig] = [
    givenOption(words, "-n", "--namespace"),
    givenOption(words, "--context"),
    givenOption(words, "--kubeconfig"),
  ];
  return {
    ...(namespace !== undefined && { namespace }),
    ...(context !== undefined && { context }),
    ...(kubeconfig !== undefined && { kubeconfig }),
  };
}
