/** kubectl-pulumi as users run it: the built executable, in a pseudo-terminal where it asks something or draws. */
import { join } from "node:path";

import { buildCli, clusterKubeconfig } from "@pko/cluster";
import { waitFor } from "@pko/testkit";

import { at, runFolder, type Place } from "./cluster.ts";

let built: Promise<string> | undefined;

/** The path of the executable: `make test` builds it once for all processes, and otherwise this process does. */
export function cliExecutable(): Promise<string> {
  const given = process.env["TEST_CLI"];
  built ??= given ? Promise.resolve(given) : buildCli(join(runFolder, "kubectl-pulumi"));
  return built;
}

export interface CliResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** What `why -o json` prints, as far as tests read it. */
interface Explanation {
  readonly cause: string;
  readonly summary: string;
  readonly message?: string;
  readonly next: readonly string[];
  readonly path: readonly string[];
}

/** A person at the terminal. */
export interface Typist {
  /** Everything that was printed. */
  readonly shown: () => string;
  readonly type: (text: string) => void;
  readonly kill: (signal: NodeJS.Signals) => void;
}

interface TerminalSession {
  /** The end of what the command prints. */
  readonly last: RegExp;
  /** Types when something is shown. */
  readonly interact?: (typist: Typist) => Promise<void>;
  readonly size?: { readonly columns: number; readonly rows: number };
}

/** The user's own environment, for example KUBECONFIG, has no effect. */
const environment = (): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  KUBECONFIG: clusterKubeconfig(),
  TERM: "xterm",
});

/** Commands of a cluster administrator in one namespace. */
export class CliUser {
  readonly #place: () => Pick<Place, "namespace">;

  constructor(place: () => Pick<Place, "namespace">) {
    this.#place = place;
  }

  async #command(args: readonly string[]): Promise<string[]> {
    return [await cliExecutable(), ...args, ...at(this.#place())];
  }

  async run(...args: readonly string[]): Promise<CliResult> {
    const child = Bun.spawn(await this.#command(args), { stdout: "pipe", stderr: "pipe", env: environment() });
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return { code: await child.exited, out, err };
  }

  /** What it prints; fails if the command does. */
  async text(...args: readonly string[]): Promise<string> {
    const { code, out, err } = await this.run(...args);
    if (code !== 0) throw new Error(`kubectl pulumi ${args.join(" ")} exited with ${code}:\n${out}${err}`);
    return out;
  }

  /** What a command prints that waits for something. `act` is called when the command has written the notice to stderr. */
  async textAfter(notice: string, act: () => Promise<void>, ...args: readonly string[]): Promise<string> {
    const child = Bun.spawn(await this.#command(args), { stdout: "pipe", stderr: "pipe", env: environment() });
    let err = "";
    const read = async (): Promise<void> => {
      const decoder = new TextDecoder();
      for await (const bytes of child.stderr) err += decoder.decode(bytes, { stream: true });
    };
    const [reading, printed] = [read(), new Response(child.stdout).text()];
    await waitFor(() => err.includes(notice), { timeoutMs: 60_000, what: `the notice ${notice}` });
    await act();
    const [out] = await Promise.all([printed, reading]);
    if ((await child.exited) !== 0) throw new Error(`kubectl pulumi ${args.join(" ")} failed:\n${out}${err}`);
    return out;
  }

  async json<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.text(...args, "-o", "json")) as T;
  }

  async why(stack: string, ...args: readonly string[]): Promise<Explanation> {
    return await this.json<Explanation>("why", stack, ...args);
  }

  /** In a terminal of 100 columns, unless `size` says otherwise. */
  async inTerminal(args: readonly string[], session: TerminalSession): Promise<Omit<CliResult, "err">> {
    const { last, interact, size = { columns: 100, rows: 30 } } = session;
    let out = "";
    const decoder = new TextDecoder();
    await using terminal = new Bun.Terminal({
      cols: size.columns,
      rows: size.rows,
      data: (_, bytes) => void (out += decoder.decode(bytes, { stream: true })),
    });
    const child = Bun.spawn(await this.#command(args), { terminal, env: environment() });
    const typist = {
      shown: () => out,
      type: (text: string) => void terminal.write(text),
      kill: (signal: NodeJS.Signals) => child.kill(signal),
    };
    await interact?.(typist);
    const code = await child.exited;
    // What it printed last may still be in the terminal.
    await waitFor(async () => last.test(out), {
      timeoutMs: 30_000,
      what: `the terminal to show ${String(last)}:\n${out}`,
    });
    return { code, out };
  }

  /** Answers the question of a command. */
  async answer(answer: "y" | "n", args: readonly string[], last: RegExp): Promise<Omit<CliResult, "err">> {
    return await this.inTerminal(args, {
      last,
      async interact(typist) {
        await isShown(typist, "[y/N]");
        typist.type(`${answer}\r`);
      },
    });
  }
}

export async function isShown({ shown }: Typist, text: string): Promise<void> {
  await waitFor(async () => shown().includes(text), { timeoutMs: 180_000, what: `the terminal to show ${text}` });
}
