/**
 * What the operator reports about the inputs of a Stack, and how `kubectl pulumi why` recognizes it. The reason of the
 * condition does not: it is the same for other problems.
 */

interface InputUse {
  readonly key: string;
  /** The field that needs it. */
  readonly user: string;
}

/** `object` is a kind and a name. */
export const missingObject = (object: string, user: string): string => `there is no ${object}, which ${user} needs`;
export const missingKey = (object: string, { key, user }: InputUse): string =>
  `the ${object} has no key ${key}, which ${user} needs`;
export const invalidJson = (object: string, { key, user }: InputUse): string =>
  `the key ${key} of the ${object} is not valid JSON, which ${user} needs`;

export const reportsMissingInput = (message: string): boolean =>
  /there is no (?:Secret|ConfigMap) |has no key .+, which |is not valid JSON, which /.test(message);

/** A Program or a Flux source: `object` is a kind and a name. */
export const missingSource = (object: string): string => `there is no ${object}`;

export const reportsMissingSource = (message: string): boolean =>
  /^there is no (?!Secret |ConfigMap |Stack )\S+ \S/.test(message);

const cycleText = "Stacks depend on each other: ";

/** From a Stack back to itself. */
export const dependencyCycle = (names: readonly string[]): string =>
  `${cycleText}${names.join(" → ")}; remove one of the prerequisites or StackOutput references`;

export const reportsDependencyCycle = (message: string): boolean => message.includes(cycleText);

const mostOutputNames = 20;

/** `others`: the outputs that the Stack has. */
export function outputMissing(stack: string, output: string, others: readonly string[]): string {
  const known = others.length > 0 ? `it has ${others.slice(0, mostOutputNames).join(", ")}` : "it has no outputs";
  return `Stack ${stack} has no output ${output}: ${known}`;
}

export const reportsMissingOutput = (message: string): boolean => /Stack \S+ has no output \S/.test(message);
