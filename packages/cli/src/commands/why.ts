/** `why`: the one cause because of which a Stack is not up to date, and what to do next. */
import { argument, stackArgument, type Command } from "../command.ts";
import { documentOf } from "../documents.ts";
import { asCliError, isKindUnknown, kindsMissing, permissionText } from "../errors.ts";
import { list, section, text, toned, type Block } from "../output/blocks.ts";
import { hiddenText, type Hidden } from "../visibility.ts";
import { explainStack, type Explained } from "../why/explain.ts";
import { gatherFacts, gatherSurroundings } from "../why/gather.ts";
import { findNamed } from "../context.ts";
import { stacks } from "../kinds.ts";

export const why: Command = {
  name: "why",
  summary: "Find out why a Stack is not up to date, and what to do",
  details:
    "Follows prerequisites and outputs of other Stacks to the root cause. It reads only what you have permission to read; what it could not see is listed.",
  group: "See",
  args: [stackArgument],
  async run(context, input) {
    const name = argument(input);
    const { namespace } = context;
    try {
      await findNamed(context, stacks, name);
    } catch (error) {
      if (!isKindUnknown(error)) throw asCliError(error) ?? error;
      const { message: summary, fix } = kindsMissing;
      return report(
        { namespace, name },
        { path: [name], cause: { code: "kindsMissing", summary, next: [fix] }, hidden: [] },
      );
    }
    const around = await gatherSurroundings(context);
    const explained = await explainStack(name, async (each) => await gatherFacts(context, each, around));
    return report({ namespace, name }, explained);
  },
};

interface Subject {
  readonly namespace: string;
  readonly name: string;
}

export function report(subject: Subject, { path, cause, hidden }: Explained) {
  const unseen = distinct(hidden);
  const { code, summary, message, next } = cause;
  const document = documentOf("Explanation", {
    ...subject,
    cause: code,
    stack: path.at(-1) ?? subject.name,
    summary,
    ...(message !== undefined && { message }),
    next: [...next],
    path: [...path],
    hidden: unseen.map(({ what, permission }) => ({ what, permission: permissionText(permission) })),
  });
  return { document, blocks: explanationBlocks({ path, cause, hidden: unseen }) };
}

const distinct = (hidden: readonly Hidden[]): Hidden[] => [
  ...new Map(hidden.map((each) => [hiddenText(each), each])).values(),
];

export function explanationBlocks({ path, cause, hidden }: Explained): Block[] {
  const { code, summary, message, next } = cause;
  const isFine = code === "upToDate";
  return [
    text(toned(isFine ? "good" : "bad", summary)),
    ...(path.length > 1 ? [text(pathText(path))] : []),
    ...(message === undefined || message === "" ? [] : section(isFine ? "Status" : "Details", [text(message)])),
    ...section("What to do", next.length > 0 ? [list(next)] : []),
    ...section("Not visible to you", hidden.length > 0 ? [list(hidden.map(hiddenText))] : []),
  ];
}

const pathText = ([first = "", ...others]: readonly string[]): string =>
  `Stack ${first} waits for ${others.join(", which waits for ")}.`;
