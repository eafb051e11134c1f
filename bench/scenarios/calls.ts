/** How often and how long the CLI runs until a Stack succeeds, recorded by a wrapper script. */
import { figure, type Findings, type Profile } from "../report/figures.ts";
import type { Context, Scenario } from "./scenario.ts";

export const calls: Scenario = {
  name: "calls",
  title: "calls of the CLI until success",
  async run(context) {
    const { bed } = context;
    const name = bed.newName("calls");
    await bed.program({ name, text: "one" });
    await bed.create({ name, source: { programRef: { name } }, value: "red", path: bed.shimPath });
    await bed.succeeded(name, { text: "one", value: "red" });
    const first = await callsSoFar(context, name);
    await bed.program({ name, text: "two" });
    await bed.succeeded(name, { text: "two" });
    const second = (await callsSoFar(context, name)).slice(first.length);
    await bed.remove(name);
    return findings(first, second);
  },
};

interface Call {
  readonly command: string;
  readonly ms: number;
}

async function callsSoFar({ bed }: Context, name: string): Promise<Call[]> {
  const stack = bed.watch.stack(name);
  const pod = stack && bed.watch.podOf(stack);
  return parseCalls(await bed.yardstick.sh(`cat /state/calls/${pod?.metadata.name ?? ""}`));
}

/** Start and end in nanoseconds, then the command, whose flags are ignored. Pure. */
export function parseCalls(text: string): Call[] {
  return text
    .trim()
    .split("\n")
    .flatMap((line) => {
      const [begin, end, ...args] = line.split(" ");
      if (begin === undefined || end === undefined) return [];
      const command = args
        .filter((word) => !word.startsWith("-"))
        .slice(0, 2)
        .join(" ");
      return [{ command: `pulumi ${command}`, ms: Number(BigInt(end) - BigInt(begin)) / 1e6 }];
    });
}

function findings(first: readonly Call[], second: readonly Call[]): Findings {
  const total = (made: readonly Call[]): number => made.reduce((sum, { ms }) => sum + ms, 0);
  const profile = (title: string, made: readonly Call[]): Profile => ({
    title,
    parts: made.map(({ command, ms }) => ({ name: command, ms })),
  });
  return {
    figures: [
      ...figure({ id: "calls.create", title: "create: starts of the CLI", unit: "count" }, [first.length]),
      ...figure({ id: "calls.create.ms", title: "create: time in the CLI", unit: "ms" }, [total(first)]),
      ...figure({ id: "calls.program", title: "Program changed: starts of the CLI", unit: "count" }, [second.length]),
      ...figure({ id: "calls.program.ms", title: "Program changed: time in the CLI", unit: "ms" }, [total(second)]),
    ],
    profiles: [profile("calls of the CLI: create", first), profile("calls of the CLI: Program changed", second)],
  };
}
