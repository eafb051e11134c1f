/** `outputs`: the outputs of a Stack. */
import { outputKeyOf, stackOutputsSecretOf, type Stack } from "@pko/api";
import { builtin, isNotFound } from "@pko/kube";

import { argument, flag, stackArgument, type Command } from "../command.ts";
import { findNamed, type Context } from "../context.ts";
import { documentOf } from "../documents.ts";
import { notFound } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { blank, text, type Block } from "../output/blocks.ts";
import { outputBlocks } from "./get.ts";

export const outputs: Command = {
  name: "outputs",
  summary: "Show the outputs of a Stack",
  details:
    "Secret values are masked. With --show-secrets they are read from the Secret STACK-outputs, for which you need permission to get that Secret. Values from the Secret are text; those that are not strings in the program are JSON.",
  group: "See",
  args: [stackArgument],
  options: [{ flags: "--show-secrets", description: "Show secret values." }],
  async run(context, input) {
    const name = argument(input);
    const stack = await findNamed(context, stacks, name);
    const shown = flag(input, "showSecrets") ? await revealed(context, stack) : shownOutputs(stack);
    const masked = Object.keys(shown).filter((key) => isMasked(shown[key]));
    return {
      document: documentOf("Outputs", { namespace: context.namespace, name, outputs: shown, masked }),
      blocks: outputsBlocks(shown, masked),
    };
  },
};

/** What the status contains instead of a value. */
const placeholders: ReadonlySet<unknown> = new Set(["[secret]", "[too long]"]);
const isMasked = (value: unknown): boolean => placeholders.has(value);

type OutputValues = Readonly<Record<string, unknown>>;

const shownOutputs = ({ status }: Stack): OutputValues => status?.outputs ?? {};

export function outputsBlocks(shown: OutputValues, masked: readonly string[]): Block[] {
  if (Object.keys(shown).length === 0) return [text("The Stack has no outputs.")];
  if (masked.length === 0) return outputBlocks(shown);
  return [...outputBlocks(shown), blank, text("To show secret and long values, use --show-secrets.")];
}

async function revealed({ client, namespace }: Context, stack: Stack): Promise<OutputValues> {
  const shown = shownOutputs(stack);
  if (!Object.values(shown).some(isMasked)) return shown;
  const name = stackOutputsSecretOf(stack.metadata.name ?? "");
  try {
    const { data = {} } = await client.get(builtin.secrets, { namespace, name });
    return revealOutputs(shown, data);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw notFound(`There is no Secret ${name} with the outputs.`, "The next successful update writes it.");
  }
}

export function revealOutputs(shown: OutputValues, data: Readonly<Record<string, string>>): OutputValues {
  return Object.fromEntries(
    Object.entries(shown).map(([name, value]) => {
      const encoded = isMasked(value) ? data[outputKeyOf(name)] : undefined;
      return [name, encoded === undefined ? value : Buffer.from(encoded, "base64").toString("utf8")];
    }),
  );
}
