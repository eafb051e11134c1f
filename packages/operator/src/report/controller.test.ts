import { expect, test } from "bun:test";
import type { Stack, Update } from "@pko/api";
import { keyOf, logger, manualClock, type Client, type EventRecorder } from "@pko/kube";

import type { ReferencePoller } from "../inputs/reference-poller.ts";
import { reflectorOf } from "../shared/testing/reflectors.ts";
import { githubAppTokens } from "../sources/github-app.ts";
import { reportController } from "./controller.ts";
import { updateOf } from "./testing/views.ts";

test("the lines of a report name the Stack, the Update, its run and its trace", async () => {
  const clock = manualClock();
  const lines: string[] = [];
  const policy = { allowHttp: true, allowedAddresses: [] };
  const update = updateOf();
  const controller = reportController({
    client: {} as Client,
    clock,
    log: logger({ clock, level: "debug", write: (line) => lines.push(line) }),
    events: {} as EventRecorder,
    references: { follow: () => undefined, forget: () => undefined } as unknown as ReferencePoller,
    stacks: reflectorOf<Stack>(),
    updates: reflectorOf<Update>(update),
    workspaceClasses: undefined,
    githubApps: githubAppTokens({ policy }),
    http: { policy },
    traces: { traceId: (uid) => `trace of ${uid}` },
  });
  const end = new AbortController();
  const running = controller.run({ stop: end.signal, kill: end.signal });
  await clock.advance(0);
  controller.enqueue(keyOf(update));
  await clock.advance(0);
  end.abort();
  await clock.advance(100_000);
  await running;
  const line = lines.find((each) => each.includes('"msg":"reconciled"')) ?? "{}";
  const expected = { stack: "web", update: "web-1", run: "update-uid", traceID: "trace of update-uid" };
  expect(JSON.parse(line)).toMatchObject(expected);
});
