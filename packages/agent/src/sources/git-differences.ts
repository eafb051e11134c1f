/** Reads what `git diff-tree --raw -z` prints: which files differ between two commits. Pure. */

export interface Difference {
  readonly path: string;
  /** What differs in it is in another repository. */
  readonly isSubmodule: boolean;
}

const submoduleMode = "160000";

/** Undefined if the text is not understood. */
export function parseDifferences(text: string): readonly Difference[] | undefined {
  const fields = text.split("\0");
  // Every field ends with a NUL.
  if (fields.pop() !== "" || fields.length % 2 !== 0) return undefined;
  const differences: Difference[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const [header = "", path = ""] = fields.slice(index, index + 2);
    const [, before, after] = /^:(\d{6}) (\d{6}) [0-9a-f]+ [0-9a-f]+ [A-Z]$/.exec(header) ?? [];
    if (before === undefined || path === "") return undefined;
    differences.push({ path, isSubmodule: [before, after].includes(submoduleMode) });
  }
  return differences;
}
