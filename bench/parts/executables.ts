/** The compiled programs, as in the image. */
import { join } from "node:path";

import { buildAgent } from "@pko/agent/build";
import { buildOperator } from "@pko/operator/build";

import type { Programs } from "../../test/faults/stage.ts";

export interface Executables extends Programs {
  readonly operatorPath: string;
}

/** `leak`: an operator that must not pass a soak test. */
export async function buildExecutables(folder: string, { leak = false } = {}): Promise<Executables> {
  const [operator, agent] = [join(folder, "operator"), join(folder, "agent")];
  const main = leak ? { main: join(import.meta.dir, "soak/leaking-operator.ts") } : {};
  await buildOperator({ outfile: operator, ...main });
  buildAgent({ outfile: agent });
  return { operator: [operator], agent: [agent], operatorPath: operator };
}
