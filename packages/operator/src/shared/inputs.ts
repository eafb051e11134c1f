/**
 * The inputs of an update from other Stacks, Secrets and ConfigMaps, each with its version, as one text: `name@version`,
 * separated by spaces. Everyone who can read a Stack or a record can read it, so a version never is a digest of a value alone.
 */

export type Input = readonly [name: string, version: string];

export const formatInputs = (inputs: readonly Input[]): string =>
  [...new Set(inputs.map(([name, version]) => `${name}@${version}`))].toSorted().join(" ");

export const parseInputs = (text: string): Input[] => text.split(" ").filter(Boolean).map(nameAndVersion);

function nameAndVersion(input: string): Input {
  const at = input.lastIndexOf("@");
  return at < 0 ? [input, ""] : [input.slice(0, at), input.slice(at + 1)];
}
