/** What changes while somebody looks: a run, its cancellation, the cause of a wait, and an API server that restarts. */
import { cancellationRequestAnnotation, podNameOf } from "@pko/api";
import { encodeContent, formatFeedLine, type NumberedEvent, type RunEvent } from "@pko/records";
import { faultProxy, waitFor, type FaultProxy } from "@pko/testkit";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { stacks, updates } from "../api/install.ts";
import type { Visitor } from "../../browser/visitor.ts";
import { ago, BrowserStage, ready, reconciling, stalled, testTimeoutMs } from "./browser-stage.ts";
import { PodLog } from "./pod-log.ts";

setDefaultTimeout(testTimeoutMs);

const namespace = "live";
let stage: BrowserStage;
let proxy: FaultProxy;
let admin: Visitor;

beforeAll(async () => {
  stage = await BrowserStage.set();
  proxy = await faultProxy(stage.server.credentials);
  await stage.namespace(namespace);
  admin = await stage.admin({}, proxy.credentials);
}, testTimeoutMs);

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await proxy.close();
});

const running = (update: string) =>
  reconciling("StackProcessing", `Update ${update} is running.`, { currentUpdate: { name: update } });

const urn = (name: string): string => `urn:pulumi:dev::shop::aws:s3/bucket:Bucket::${name}`;
const step = (name: string, phase: "started" | "finished", durationMs?: number): RunEvent => ({
  kind: "resource",
  phase,
  op: "create",
  urn: urn(name),
  resourceType: "aws:s3/bucket:Bucket",
  ...(durationMs !== undefined && { durationMs }),
});

const events: readonly NumberedEvent[] = (
  [
    { kind: "step", name: "up" },
    step("invoices", "started"),
    step("invoices", "finished", 3000),
    { kind: "diagnostic", severity: "warning", message: "tags.owner is deprecated", urn: urn("invoices") },
    step("images", "finished", 2000),
    step("backups", "started"),
    step("backups", "finished", 7000),
  ] satisfies RunEvent[]
).map((event, at) => ({ seq: at + 1, time: ago(60 - at), event }));

async function startRun(name: string): Promise<{ log: PodLog; feed: (...seqs: number[]) => void; uid: string }> {
  await stage.stack(`${namespace}/${name}`, running(`${name}-1`));
  await stage.update(`${namespace}/${name}-1`, name, { status: { startTime: ago(60) } });
  const { metadata } = await stage.client.get(updates, { namespace, name: `${name}-1` });
  const uid = metadata.uid ?? "";
  const log = new PodLog(proxy, { namespace, name: podNameOf(name) });
  const feed = (...seqs: number[]): void =>
    log.append(...events.filter(({ seq }) => seqs.includes(seq)).map((event) => formatFeedLine(uid, event)));
  return { log, feed, uid };
}

const row = (name: string) => admin.page.locator(".gantt tbody tr").filter({ hasText: name });

async function untilRow(name: string, text: RegExp): Promise<void> {
  await waitFor(
    async () => {
      expect(await admin.text(row(name))).toMatch(text);
      return true;
    },
    { timeoutMs: 60_000 },
  );
}

test("a run is followed from its first event to its record, which fills a gap", async () => {
  const { log, feed, uid } = await startRun("web");
  await admin.open(`/runs/${namespace}/web-1`, "web-1");
  await admin.untilText("No resource is being changed yet.");

  log.append(
    JSON.stringify({ level: "info", msg: "run started", run: uid }),
    "Updating (dev):",
    " +  invoices creating (0s)",
  );
  feed(1, 2);
  await untilRow("invoices", /create running/);
  expect(await row("invoices").locator(".bar-running").count()).toBe(1);
  feed(3);
  await untilRow("invoices", /create 3 s$/);
  expect(await row("invoices").locator(".bar-create").count()).toBe(1);

  await admin.page.getByRole("link", { name: "Diagnostics" }).click();
  feed(4);
  await admin.untilText("tags.owner is deprecated");

  await admin.page.getByRole("link", { name: "Log", exact: true }).click();
  await admin.untilText("2 lines");
  log.append(" +  invoices created (3s)");
  await admin.untilText("3 lines");
  await admin.page.getByLabel("Search in the log").fill("created");
  await admin.untilText("1 of 3 lines");

  await admin.page.getByRole("link", { name: "Timeline" }).click();
  // The event about the images is lost, as when the kubelet rotates the log.
  feed(6);
  await untilRow("backups", /create running/);
  await admin.untilText("1 event is missing");
  expect(await row("images").count()).toBe(0);

  feed(7);
  log.append(JSON.stringify({ level: "info", msg: "run finished", run: uid }));
  await untilRow("backups", /create 7 s$/);
  await finishRun("web");
  await untilRow("images", /create 2 s$/);
  await admin.untilNoText("1 event is missing");
  await admin.untilText("succeeded");
  log.end();
});

async function finishRun(name: string): Promise<void> {
  const omitted = { events: 0, resources: 0, values: 0 };
  await stage.record(`${namespace}/${name}-1`, {
    stackName: name,
    workspaceName: name,
    type: "up",
    result: "succeeded",
    startTime: ago(60),
    endTime: ago(50),
    content: await encodeContent({ version: 1, events: [...events], resources: [], omitted }),
  });
  await stage.status(`${namespace}/${name}`, ready());
}

test("a running update is cancelled by its button", async () => {
  await stage.stack(`${namespace}/cancelled`, running("cancelled-1"));
  await admin.open(`/stacks/${namespace}/cancelled`, "cancelled");
  await admin.confirm("Cancel update");
  await admin.untilText("Requested the cancellation of Update cancelled-1.");
  const { metadata } = await stage.client.get(stacks, { namespace, name: "cancelled" });
  expect(metadata.annotations?.[cancellationRequestAnnotation]).toBe("cancelled-1");
});

describe("a Stack that waits for others", () => {
  const held = reconciling("PrerequisiteNotSatisfied", "The Stack waits for others.");

  test("shows the root cause, through other Stacks, until that changes", async () => {
    await stage.stack(`${namespace}/base`, stalled("UpdateFailed", "The address range is taken."));
    await stage.stack(`${namespace}/middle`, held, {
      envRefs: { ID: { type: "StackOutput", stack: "base", output: "id" } },
    });
    await stage.stack(`${namespace}/top`, held, { prerequisites: [{ name: "middle" }] });
    await admin.open(`/stacks/${namespace}/top`, "top");
    await admin.untilText("Root cause top waits for middle, which waits for base.");
    await admin.untilText("The address range is taken.");
    expect(await admin.violations()).toEqual([]);
    await stage.client.delete(stacks, { namespace, name: "base" });
    await admin.untilText("There is no Stack base in this namespace.");
    await stage.status(`${namespace}/top`, ready("It succeeded."));
    await admin.untilText("It succeeded.");
    await admin.untilNoText("Root cause");
  });
});

test("the page stays live while many Stacks are opened one after the other", async () => {
  const many = "many";
  await stage.namespace(many);
  const names = Array.from({ length: 15 }, (_, at) => `shown-${String(at).padStart(2, "0")}`);
  for (const name of names) await stage.stack(`${many}/${name}`, ready(`The first message of ${name}.`));
  await admin.open(`/?namespace=${many}`, "Stacks");
  for (const name of names) {
    await admin.follow(new RegExp(name));
    await admin.page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
    await admin.untilText(`The first message of ${name}.`);
    await admin.page.goBack();
  }
  await admin.follow(/shown-14/);
  await stage.status(`${many}/shown-14`, stalled("UpdateFailed", "The second message of shown-14."));
  await admin.untilText("The second message of shown-14.");
});

test("a page continues after a restart of the API server, with what changed since", async () => {
  const visitor = await stage.admin();
  await stage.stack(`${namespace}/restarted`, ready("Before the restart."));
  await stage.stack(`${namespace}/removed`, ready("Removed after the restart."));
  await visitor.open(`/?namespace=${namespace}`, "Stacks");
  await visitor.untilText("Before the restart.");
  await stage.server.kill();
  await visitor.untilText("The connection for Stacks has a problem, and is retried.");
  expect(await visitor.text()).toContain("Before the restart.");
  await stage.server.restart();
  await stage.status(`${namespace}/restarted`, stalled("UpdateFailed", "After the restart."));
  await stage.client.delete(stacks, { namespace, name: "removed" });
  await visitor.untilText("After the restart.");
  await visitor.untilNoText("Removed after the restart.");
  await visitor.untilNoText("has a problem");
  await visitor.context.close();
});
