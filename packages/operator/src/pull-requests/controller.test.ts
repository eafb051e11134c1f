import { expect, test } from "bun:test";
import type { Stack, Update } from "@pko/api";
import { logger, manualClock, type Client, type EventRecorder } from "@pko/kube";

import type { ReferencePoller } from "../inputs/reference-poller.ts";
import { reflectorOf } from "../shared/testing/reflectors.ts";
import { githubAppTokens } from "../sources/github-app.ts";
import { pullRequestController } from "./controller.ts";
import { aParent } from "./testing/views.ts";

/** Requests that do not end before their pass is aborted. */
function slowClient() {
  const signals: AbortSignal[] = [];
  const find = (_kind: unknown, _ref: unknown, { signal }: { readonly signal: AbortSignal }): Promise<never> => {
    signals.push(signal);
    return new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
  };
  return { signals, client: { find } as unknown as Client };
}

test("a pass may take as long as three reports to the slowest forge, which would otherwise be repeated forever", async () => {
  const clock = manualClock();
  const lines: string[] = [];
  const { signals, client } = slowClient();
  const policy = { allowHttp: true, allowedAddresses: [] };
  const controller = pullRequestController({
    client,
    clock,
    log: logger({ clock, write: (line) => lines.push(line) }),
    events: {} as EventRecorder,
    references: { follow: () => undefined, forget: () => undefined } as unknown as ReferencePoller,
    reflector: reflectorOf<Stack>(aParent()),
    updates: reflectorOf<Update>(),
    git: { policy, githubApps: githubAppTokens({ policy }) },
  });
  const end = new AbortController();
  const running = controller.run({ stop: end.signal, kill: end.signal });
  await clock.advance(0);
  const [exchangeMs, reportMs] = [20_000, 2 * 15_000];
  await clock.advance(exchangeMs + 3 * reportMs);
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  await clock.advance(10_000);
  expect(signals[0]?.aborted).toBe(true);
  const late = lines.find((line) => line.includes("longer than its deadline")) ?? "{}";
  const { name = "" } = aParent().metadata;
  expect(JSON.parse(late)).toMatchObject({ name, stack: name });
  end.abort();
  await clock.advance(100_000);
  await running;
});
