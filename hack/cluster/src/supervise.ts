/** Keeps programs running: a component that ends for any reason is restarted. */
import { appendFileSync, closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";

import type { Component } from "./components.ts";
import { goProgramEnv } from "./go-programs.ts";

const firstDelayMs = 200;
const maxDelayMs = 5000;
const pollMs = 500;
/** A program that ran this long was healthy, so its next restart has the shortest delay. */
const healthyAfterMs = 10_000;

export function keepRunning(component: Component, logs: string): void {
  void superviseForever(component, join(logs, `${component.name}.log`));
}

async function superviseForever(component: Component, log: string): Promise<never> {
  let delay = firstDelayMs;
  for (;;) {
    while (!shouldRun(component)) await Bun.sleep(pollMs);
    const started = performance.now();
    const outcome = await runOnce(component, log);
    delay = performance.now() - started > healthyAfterMs ? firstDelayMs : Math.min(delay * 2, maxDelayMs);
    appendFileSync(log, `\nsupervisor: ${component.name} ended (${outcome}), restarting in ${delay} ms\n`);
    await Bun.sleep(delay);
  }
}

function shouldRun({ requiredFile }: Component): boolean {
  return requiredFile === undefined || existsSync(requiredFile);
}

async function runOnce(component: Component, log: string): Promise<string> {
  const output = openSync(log, "a");
  try {
    const env = { ...process.env, ...goProgramEnv };
    const child = Bun.spawn([...component.command], { stdin: "ignore", stdout: output, stderr: output, env });
    await child.exited;
    return String(child.signalCode ?? `exit ${child.exitCode}`);
  } finally {
    closeSync(output);
  }
}
