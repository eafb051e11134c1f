/**
 * The file in `$PULUMI_ENV`: init containers append lines to it, and the agent reads it before every command. The format
 * is that of dotenv files: `export`, literal single quotes, double quotes with escapes, `$NAME` for variables set above.
 */
import { errorMessage } from "@pko/rpc";
import { hasCode, readIfExists } from "../system/files.ts";

/** At the start of a line. Blank lines are skipped one by one: together they would be searched again from each of them. */
const assignment = /[^\S\n]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*[=:][ \t]*/y;
/** Of all values, in characters. The kernel passes no more to a program, and a few lines such as `A=$A$A` would fill the memory. */
const maxChars = 1024 * 1024;

export async function readEnvFile(path: string | undefined): Promise<Record<string, string>> {
  const text = path ? await readText(path) : undefined;
  if (path === undefined || text === undefined) return {};
  const variables = parseEnvFile(text);
  if (variables === undefined) throw new Error(`the file ${path} in PULUMI_ENV ${tooLarge}`);
  const unusable = Object.keys(variables).find((name) => variables[name]?.includes("\0"));
  if (unusable === undefined) return variables;
  throw new Error(`the file ${path} in PULUMI_ENV has a zero byte in ${unusable}, which no program can get; remove it`);
}

const tooLarge = `has values of more than ${maxChars} characters, which no program can get; write large values to other files`;

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

/** Undefined if the values are too large. */
export function parseEnvFile(file: string): Record<string, string> | undefined {
  const text = file.replaceAll("\r\n", "\n");
  const variables = new Map<string, string>();
  let chars = 0;
  for (let at = 0; at < text.length;) {
    assignment.lastIndex = at;
    const match = assignment.exec(text);
    if (!match) {
      at = afterLine(text, at);
      continue;
    }
    const value = readValue(text, assignment.lastIndex, variables);
    chars += value.text.length;
    if (chars > maxChars) return undefined;
    variables.set(match[1] ?? "", value.text);
    at = value.next;
  }
  return Object.fromEntries(variables);
}

interface Read {
  readonly text: string;
  /** Where the next line starts. */
  readonly next: number;
}

const single = /'([^']*)'/y;
const double = /"((?:\\[\s\S]|[^"\\])*)"/y;

function readValue(text: string, at: number, variables: ReadonlyMap<string, string>): Read {
  const literal = matchAt(single, text, at);
  if (literal) return { text: literal[1] ?? "", next: afterLine(text, single.lastIndex) };
  const quoted = matchAt(double, text, at);
  if (quoted) return { text: expand(unescape(quoted[1] ?? ""), variables), next: afterLine(text, double.lastIndex) };
  const next = afterLine(text, at);
  const plain = text
    .slice(at, next)
    .replace(/(^|\s)#[^\n]*/, "")
    .trim();
  return { text: expand(plain, variables), next };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
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
  let chars = 0;
  return text.replaceAll(/\\\$|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)/g, (whole, braced?: string, bare?: string) => {
    if (whole === String.raw`\$`) return "$";
    const value = variables.get(braced ?? bare ?? "") ?? "";
    chars += value.length;
    // The rest does not matter: it is too large already.
    return chars > 2 * maxChars ? "" : value;
  });
}

/** The start of the next line. */
function afterLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end + 1;
}
