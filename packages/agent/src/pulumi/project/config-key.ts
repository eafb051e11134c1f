/** Parses configuration keys and paths by the CLI's rules, because the agent writes the settings file for the CLI. */
import { done, failed, type Outcome } from "../../outcome.ts";
import { quoteName } from "../../system/clean-text.ts";
import { parsePath } from "../property-path.ts";

export interface ConfigKey {
  /** `<namespace>:<name>`, as in the settings file. */
  readonly key: string;
  /** The rest of a key that is a path into the value. */
  readonly path: readonly (string | number)[];
}

export function parseConfigKey(text: string, project: string, isPath: boolean): Outcome<ConfigKey> {
  if (!isPath) {
    const key = qualified(text, project);
    return key === undefined ? invalid(text) : done({ key, path: [] });
  }
  // The namespace belongs to the first segment; the other segments may contain colons.
  const end = text.search(/[[.]/);
  const key = end > 0 ? qualified(text.slice(0, end), project) : qualified(text, project);
  if (key === undefined) return invalid(text);
  const colon = key.indexOf(":");
  const segments = parsePath(key.slice(colon + 1) + (end > 0 ? text.slice(end) : ""));
  const [first, ...path] = segments ?? [];
  if (typeof first !== "string" || first === "") return invalid(text);
  return done({ key: `${key.slice(0, colon)}:${first}`, path });
}

/** Adds the project's name if there is no namespace; `ns:config:name` is the old form of `ns:name`. */
export function qualified(text: string, project: string): string | undefined {
  const parts = text.split(":");
  const [first = "", second = "", third = ""] = parts;
  if (parts.length === 1) return first === "" ? undefined : `${project}:${first}`;
  if (parts.length === 2) return second === "" ? undefined : text;
  return parts.length === 3 && second === "config" && third !== "" ? `${first}:${third}` : undefined;
}

function invalid(text: string): Outcome<never> {
  return failed("configInvalid", `${quoteName(text)} is not a valid configuration key; use name or namespace:name`);
}
