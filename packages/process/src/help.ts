/** The text of `--help`, from the table of flags that is parsed. */

/** A flag for `parseArgs` of `node:util`, with its meaning. */
export interface Flag {
  readonly type: "string" | "boolean";
  readonly default?: string | boolean | string[];
  readonly multiple?: boolean;
  readonly help: string;
}

interface Help {
  /** The forms of the command, one per line. */
  readonly usage: readonly string[];
  readonly about: string;
  readonly flags: Readonly<Record<string, Flag>>;
  /** The environment variable of a flag, if flags have one. */
  readonly variableOf?: (flag: string) => string;
}

export function helpText({ usage, about, flags, variableOf }: Help): string {
  const entries = Object.entries(flags).map(([name, flag]) => flagText(name, flag, variableOf?.(name)));
  const forms = usage.map((form, index) => `${index === 0 ? "Usage:" : "      "} ${form}`);
  return [...forms, "", wrapped(about, ""), "", "Flags:", ...entries, ...ownFlags, ""].join("\n");
}

const ownFlags = ["  --help", "      Prints this text.", "  --version", "      Prints the version."];

function flagText(name: string, { type, default: fallback, help }: Flag, variable: string | undefined): string {
  const value = type === "boolean" ? "" : " VALUE";
  const hasDefault = type === "string" && fallback !== undefined && fallback.toString() !== "";
  const facts = [
    ...(hasDefault ? [`default: ${fallback.toString()}`] : []),
    ...(variable === undefined ? [] : [`variable: ${variable}`]),
  ];
  return `  --${name}${value}\n${wrapped(`${help}${facts.length > 0 ? ` [${facts.join(", ")}]` : ""}`, "      ")}`;
}

const width = 100;

function wrapped(text: string, indent: string): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(" ")) {
    if (line.trim() !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent;
    }
    line += line === indent ? word : ` ${word}`;
  }
  return [...lines, line].join("\n");
}

/** Whether the arguments request the help or the version. */
export function ownFlag(args: readonly string[]): "help" | "version" | undefined {
  if (args.includes("--help") || args.includes("-h")) return "help";
  return args.includes("--version") ? "version" : undefined;
}
