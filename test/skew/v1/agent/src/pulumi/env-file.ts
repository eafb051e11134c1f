/**
 * The file `$PULUMI_ENV` names: lines that init containers append, read before every command. The dialect is the one
 * of dotenv files: `export`, single quotes as they are, double quotes with escapes, `$NAME` for what was set above.
 */
import { errorMessage } from "../../../rpc/src/index.ts";
import { hasCode, readIfThere } from "../system/files.ts";

const assignment = /^\s*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*[=:][ \t]*/;

export async function readEnvFile(path: string | undefined): Promise<Record<string, string>> {
  const text = path ? await readText(path) : undefined;
  return text === undefined ? {} : parseEnvFile(text);
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readIfThere(path);
  } catch (error) {
    throw new Error(`the file ${path}, which PULUMI_ENV names, cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}

/** In words that say what to do: an init container often runs as another user than the workspace. */
function reasonOf(error: unknown): string {
  if (!hasCode(error, "EACCES", "EPERM")) return errorMessage(error);
  const user = process.geteuid?.() ?? "the workspace's";
  return `the workspace's user (uid ${user}) may not; let the init container that writes it make it readable (chmod 644)`;
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
    return { text: expand(unescaped(double[1] ?? ""), variables), rest: afterLine(from.slice(double[0].length)) };
  const line = from.split("\n", 1)[0] ?? "";
  const plain = line.replace(/(^|\s)#.*$/, "").trim();
  return { text: expand(plain, variables), rest: afterLine(from) };
}

function unescaped(text: string): string {
  return text.replaceAll(/\\([\s\S])/g, (whole, character: string) => {
    if (character === "n") return "\n";
    if (character === "r") return "\r";
    if (character === "t") return "\t";
    // A dollar keeps its backslash, which tells `expand` to leave it alone.
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
