/** `__complete`, which the completion scripts call. It never fails: without an answer there is no completion. */
import { builtin, kubeconfigContexts, metadataOf } from "@pko/kube";

import type { Command } from "../command.ts";
import { kubeconfigPaths, openContext, type GlobalOptions } from "../context.ts";
import { globalOptions } from "../global-options.ts";
import type { Io } from "../io.ts";
import { stacks, updates } from "../kinds.ts";
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

type Names = "stack" | "update" | "namespace" | "context";

/** A person waits for it. */
const patienceMs = 3000;

async function names(io: Io, of: Names, words: readonly string[]): Promise<Candidate[]> {
  const given = givenOptions(words);
  if (of === "context") {
    return (await kubeconfigContexts(kubeconfigPaths(io.env, given.kubeconfig))).map((value) => ({ value }));
  }
  const { client, namespace } = await openContext(io, given);
  const resource = metadataOf({ stack: stacks, update: updates, namespace: builtin.namespaces }[of]);
  const options = { timeoutMs: patienceMs, ...(of !== "namespace" && { namespace }) };
  const { items } = await client.list(resource, options);
  return items.map(({ metadata }) => ({ value: metadata.name ?? "" }));
}

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
