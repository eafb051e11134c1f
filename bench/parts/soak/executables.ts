/** The compiled programs, as in the image. */
import { join } from "node:path";

import { buildAgent } from "@pko/agent/build";
import { buildOperator } from "@pko/operator/build";

import type { Programs } from "../../../test/faults/stage.ts";

export interface Executables extends Programs {
  readonly operatorPath: string;
}

export async function buildExecutables(folder: string, { leak }: { readonly leak: boolean }): Promise<Executables> {
  const [operator, agent] = [join(folder, "operator"), join(folder, "agent")];
  const main = leak ? { main: join(import.meta.dir, "leaking-operator.ts") } : {};
  await buildOperator({ outfile: operator, ...main });
  buildAgent({ outfile: agent });
  return { operator: [operator], agent: [agent], operatorPath: operator };
}
