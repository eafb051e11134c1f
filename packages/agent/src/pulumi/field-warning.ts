/**
 * Pulumi YAML's warning that `configuration` is deprecated. A Program has a field of this name, for which `config` is no
 * replacement (ADR 45), so the users of a Program could not do anything about it.
 */
import { withoutColors } from "../system/redact.ts";

const warning = "Warning: Pulumi.yaml: root-level `configuration` field is deprecated; please use `config` instead.";

/** The language host prints it as a line of its own, which the engine reports as a diagnostic of its own. */
export const isFieldWarning = (message: string): boolean => withoutColors(message).trim() === warning;

/** What remains of the list of diagnostics: a stack that had no other, and then a list that has no other resource. */
const emptyHeadings = [/^ {2}pulumi:pulumi:Stack \(.*\):\n\n(?! {4})/gm, /^Diagnostics:\n(?! {2})/gm];

/** For the text that the CLI prints: without the lines that end with the warning. */
export function withoutFieldWarning(text: string): string {
  const plain = withoutColors(text);
  if (!plain.includes(warning)) return text;
  const lines = plain.split("\n").filter((line) => !line.trimEnd().endsWith(warning));
  return emptyHeadings.reduce((rest, heading) => rest.replaceAll(heading, ""), lines.join("\n"));
}
