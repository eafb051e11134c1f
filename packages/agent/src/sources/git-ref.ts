/** Checks commits and refs before git gets them, so that git never takes one for an option. */
import { done, failed, type Outcome } from "../outcome.ts";
import { quoteName } from "../system/clean-text.ts";

// oxlint-disable-next-line no-control-regex -- it must match control characters
const unprintable = /[\u0000-\u0020\u007F-\u00A0\u2028\u2029]/;

export function parseCommit(commit: string): Outcome<string> {
  if (/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i.test(commit)) return done(commit.toLowerCase());
  return failed("sourceInvalid", "the commit is not a full hash of 40 or 64 hexadecimal digits");
}

/** The full names that a ref may have, in the order in which they are tried. Follows git's rules, without wildcards. */
export function parseRef(ref: string): Outcome<readonly string[]> {
  if (!isRefName(ref)) return failed("sourceInvalid", `${quoteName(ref, 100)} is not a valid branch, tag or ref name`);
  if (ref === "HEAD" || ref.startsWith("refs/")) return done([ref]);
  return done([`refs/heads/${ref}`, `refs/tags/${ref}`]);
}

function isRefName(ref: string): boolean {
  if (ref === "" || ref === "@" || unprintable.test(ref) || /[~^:?*[\\]|\.\.|@\{|\/\//.test(ref)) return false;
  const parts = ref.split("/");
  return !ref.startsWith("-") && parts.every((part) => part !== "" && !/^[.-]|\.lock$|\.$/.test(part));
}
