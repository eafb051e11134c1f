/**
 * The file in `$PULUMI_ENV`: init containers append lines to it, and the agent reads it before every command. The format
 * is that of dotenv files: `export`, literal single quotes, double quotes with escapes, `$NAME` for variables set above.
 */
import { errorMessage } from "@pko/rpc";
import { hasCode, readIfExists } from "../system/files.ts";

const assignment = /^\s*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*[=:][ \t]*/;

export async function readEnvFile(path: string | undefined): Promise<Record<string, string>> {
  const text = path ? await readText(path) : undefined;
  return text === undefined ? {} : parseEnvFile(text);
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readIfExists(path);
  } catch (error) {
    throw new Error(`the file ${path} in PULUMI_ENV cannot be read: ${readFailure(error)}`, { cause: error });
  }
}

/** Includes a remedy, because an init container often runs as another user than the workspace. */
function readFailure(error: unknown): string {
  if (!hasCode(error, "EACCES", "EPERM")) return errorMessage(error);
  const uid = process.geteuid?.() ?? "unknown";
  return `the workspace's user (UID ${uid}) has no permission; make it readable in the init container that writes it (chmod 644)`;
}

export function parseEnvFile(text: string): Record<string, string> {
  const variables = new Map<string, string>();
  let rest = text.replaceAll("\r\n", "\n");
  while (rest !== "") {
    const match = assignment.exec(rest);
    if (!match) {
      rest = afterLine(rest);
      continue;
    }
    const value = readValue(rest.slice(match[0].length), variables);
    variables.set(match[1] ?? "", value.text);
    rest = value.rest;
  }
  return Object.fromEntries(variables);
}

interface Read {
  readonly text: string;
  readonly rest: string;
}

function readValue(from: string, variables: ReadonlyMap<string, string>): Read {
  const single = /^'([^']*)'/.exec(from);
  if (single) return { text: single[1] ?? "", rest: afterLine(from.slice(single[0].length)) };
  const double = /^"((?:\\[\s\S]|[^"\\])*)"/.exec(from);
  if (double)
    return { text: expand(unescape(double[1] ?? ""), variables), rest: afterLine(from.slice(double[0].length)) };
  const line = from.split("\n", 1)[0] ?? "";
  const plain = line.replace(/(^|\s)#.*$/, "").trim();
  return { text: expand(plain, variables), rest: afterLine(from) };
}

function unescape(text: string): string {
  return text.replaceAll(/\\([\s\S])/g, (whole, character: string) => {
    if (character === "n") return "\n";
    if (character === "r") return "\r";
    if (character === "t") return "\t";
    // Keep the backslash before a dollar, so that `expand` does not expand it.
    return character === "$" ? whole : character;
  });
}

function expand(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\\\$|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)/g, (whole, braced?: string, bare?: string) => {
    if (whole === String.raw`\$`) return "$";
    return variables.get(braced ?? bare ?? "") ?? "";
  });
}

function afterLine(text: string): string {
  const end = text.indexOf("\n");
  return end < 0 ? "" : text.slice(end + 1);
}
