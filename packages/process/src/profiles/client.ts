/** The command `profile`: prints a profile of another process in the same container. */
import { parseArgs } from "node:util";

import { helpText, ownFlag, type Flag } from "../help.ts";
import { profileKinds, type ProfileKind } from "./profiles.ts";
import { maxProfileSeconds, profileSocket } from "./server.ts";

const flags = {
  seconds: { type: "string", default: "30", help: `How long to record a CPU profile, at most ${maxProfileSeconds}.` },
  pid: { type: "string", default: "1", help: "The process ID of the operator." },
} as const satisfies Readonly<Record<string, Flag>>;

const help = (): string =>
  helpText({
    usage: ["operator profile heap > operator.heapsnapshot", "operator profile cpu > operator.cpuprofile"],
    about:
      "Prints a heap snapshot or a CPU profile of the operator, which Chrome's developer tools open. A heap snapshot contains every secret that the operator has in memory, such as the key of its CA: keep it like these.",
    flags,
  });

interface Request {
  readonly kind: ProfileKind;
  readonly pid: number;
  readonly seconds: number;
}

/** The text of the help, or the profile. */
export async function runProfile(args: readonly string[]): Promise<string | Uint8Array> {
  return ownFlag(args) === "help" ? help() : await fetchProfile(parseRequest(args));
}

function parseRequest(args: readonly string[]): Request {
  const { values, positionals } = parseArgs({ args: [...args], options: flags, allowPositionals: true });
  const kind = profileKinds.find((each) => each === positionals[0]);
  const [seconds, pid] = [Number(values.seconds), Number(values.pid)];
  if (!kind || positionals.length > 1) throw new Error(`profile needs one of ${profileKinds.join(", ")}`);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > maxProfileSeconds)
    throw new Error(`--seconds must be a whole number between 1 and ${maxProfileSeconds}`);
  if (!Number.isInteger(pid) || pid < 1) throw new Error("--pid must be a process ID");
  return { kind, seconds, pid };
}

async function fetchProfile({ kind, seconds, pid }: Request): Promise<Uint8Array> {
  const unix = profileSocket(pid);
  let response: Response;
  try {
    response = await fetch(`http://localhost/${kind}?seconds=${seconds}`, { unix, timeout: false });
  } catch (error) {
    const message = `process ${pid} serves no profiles at ${unix}; --pid selects another process, and the operator's log says why there is no socket`;
    throw new Error(message, { cause: error });
  }
  if (!response.ok) throw new Error((await response.text()).trim());
  return new Uint8Array(await response.arrayBuffer());
}
