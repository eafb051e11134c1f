/** Notifications with a real API server and a real HTTP server. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { isInvalid } from "@pko/kube";
import { notifications } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { isReady, NotificationScene, readyReason, stallOf, testTimeoutMs, type Received } from "./scene.ts";

setDefaultTimeout(testTimeoutMs);

const groupMs = 301_000;
const textOf = (received: Received | undefined): string =>
  (received?.body as { text?: string } | undefined)?.text ?? "";
const canary = "canary-7f3a";

test("each type has its format; neither messages nor statuses, events and logs contain secrets", async () => {
  await using scene = await NotificationScene.open();
  await scene.notification("slack");
  await scene.notification("teams", { type: "Teams", clusterName: "eu-1" });
  await scene.apply("events", {
    type: "CloudEvents",
    url: scene.sink.url("events"),
    secretRef: { name: "token" },
    groupSeconds: 300,
  });
  await scene.becomes("events", "stalled", (each) => stallOf(each) === "SecretMissing");
  await scene.secret("token", { token: canary });
  scene.clock.jump(70_000);
  await scene.becomes("events", "ready", isReady);

  const permalink = "https://app.pulumi.com/acme/web/dev/updates/1";
  const status = { permalink, message: canary, outputs: canary, stdout: { text: canary, truncated: false } };
  await scene.update("web", { failure: "the program failed", status });
  scene.clock.jump(groupMs);
  const [slack] = await scene.receives("slack", 1);
  expect(textOf(slack)).toBe(
    [
      `:red_circle: *Stack web: up failed (web) in namespace ${scene.namespace}*`,
      "```\nthe program failed\n```",
      `\`kubectl pulumi why web -n ${scene.namespace}\``,
      `<${permalink}|Open in Pulumi Cloud>`,
    ].join("\n"),
  );
  const [teams] = await scene.receives("teams", 1);
  expect(teams?.body).toMatchObject({
    type: "message",
    attachments: [{ contentType: "application/vnd.microsoft.card.adaptive", content: { type: "AdaptiveCard" } }],
  });
  const [event] = await scene.receives("events", 1);
  expect(event?.contentType).toStartWith("application/cloudevents+json");
  expect(event?.authorization).toBe(`Bearer ${canary}`);
  expect(event?.body).toMatchObject({
    specversion: "1.0",
    source: `/apis/pulumi.com/v1/namespaces/${scene.namespace}/stacks/web`,
    type: "com.pulumi.kubernetes.stack.update-failed",
    data: { kind: "UpdateFailed", severity: "Error", update: "web", permalink },
  });

  for (const name of ["slack", "teams", "events"]) {
    const { status: reported } = await scene.becomes(name, "delivered", (each) => each.status?.delivered === 1);
    expect(JSON.stringify(reported)).not.toContain("127.0.0.1");
  }
  const written = JSON.stringify([scene.logged, scene.operator.events, scene.sink.received.map(({ body }) => body)]);
  expect(written).not.toContain(canary);
  expect(scene.operator.metrics.expose()).toContain('notification_deliveries_total{type="Teams",result="delivered"} 1');
});

test("a thousand failures are one message with the counts, and one batch of CloudEvents with stable IDs", async () => {
  await using scene = await NotificationScene.open();
  await scene.notification("slack", { filter: { severities: ["Error"] } });
  await scene.notification("events", { type: "CloudEvents" });
  await Promise.all(
    Array.from({ length: 20 }, async (_, worker) => {
      for (let index = worker; index < 1000; index += 20)
        await scene.endUpdate(`web-${index}`, { failure: "quota exceeded" });
    }),
  );
  await scene.update("fine");
  expect(scene.sink.received).toEqual([]);
  scene.clock.jump(groupMs);
  await scene.becomes("slack", "delivered", (each) => each.status?.delivered === 1000);
  await scene.becomes("events", "delivered", (each) => each.status?.delivered === 1001);
  expect(scene.sink.at("slack").length).toBe(1);
  const text = textOf(scene.sink.at("slack")[0]);
  expect(text).toContain(`*1000 updates failed in namespace ${scene.namespace}*`);
  expect(text.match(/^:red_circle: Stack web-/gm)?.length).toBe(10);
  expect(text).toContain("… and 990 more");

  const batches = scene.sink.at("events").map(({ body }) => body as readonly { id: string }[] | { id: string });
  const ids = batches.flat().map(({ id }) => id);
  expect([batches.length, ids.length, new Set(ids).size]).toEqual([2, 1001, 1001]);
});

describe("a restart", () => {
  test("loses nothing and repeats nothing", async () => {
    await using scene = await NotificationScene.open();
    await scene.notification("slack");
    await scene.stack("web");
    await scene.update("web", { failure: "first" });
    scene.clock.jump(groupMs);
    await scene.receives("slack", 1);
    await scene.becomes("slack", "delivered", (each) => each.status?.delivered === 1);

    // Known, but not sent: the Stack is stalled, an Update has ended, and another whose objects are deleted.
    await scene.stack("api", scene.stalled("SpecInvalid", "spec.branch: is required"));
    await scene.update("api", { failure: "second" });
    await scene.update("old", { spec: { type: "destroy" } });
    await scene.becomes("slack", "waiting", (each) => each.status?.unsent?.length === 1);
    await scene.deleteUpdate("old");
    await scene.restart();
    scene.clock.jump(groupMs);
    const [, message] = await scene.receives("slack", 2);
    const text = textOf(message);
    // Both may have happened in the same second.
    expect(text).toMatch(/\*1 (?:Stack is stalled|update failed), 1 .+, 1 Stack was destroyed in namespace/);
    for (const part of [
      "1 Stack is stalled",
      "1 update failed",
      "SpecInvalid: spec.branch: is required",
      "second",
      "Stack old: its resources were destroyed",
    ]) {
      expect(text).toContain(part);
    }
    await scene.becomes("slack", "delivered", (each) => each.status?.delivered === 4 && !each.status.unsent);

    await scene.restart();
    await scene.update("last");
    scene.clock.jump(groupMs);
    const messages = await scene.receives("slack", 3);
    expect(textOf(messages[2])).toContain("Stack last: up succeeded");
    expect(textOf(messages[2])).not.toContain("api");
  });

  test("before the first message does not flood: what happened before the Notification is never sent", async () => {
    await using scene = await NotificationScene.open();
    await scene.stack("web", scene.stalled("SpecInvalid", "from before"));
    await scene.update("web", { failure: "from before" });
    scene.clock.jump(5000);
    await scene.notification("slack");
    await scene.restart();
    await scene.update("api", { failure: "from now" });
    scene.clock.jump(groupMs);
    const [message] = await scene.receives("slack", 1);
    expect(textOf(message)).toContain("from now");
    expect(textOf(message)).not.toContain("from before");
  });
});

describe("a sink that fails", () => {
  test("is tried again after a pause, and everything is delivered", async () => {
    await using scene = await NotificationScene.open();
    await scene.notification("slack");
    const limited = { status: 429, headers: { "retry-after": "300" } };
    const responses = [new Response(canary, { status: 500 })];
    // The second attempt may begin before the test continues.
    scene.sink.responses.set("slack", () => responses.shift() ?? new Response("", limited));
    await scene.update("web", { failure: "first" });
    scene.clock.jump(groupMs);
    const failing = await scene.becomes("slack", "failing", (each) => readyReason(each) === "DeliveryFailed");
    expect(failing.status?.lastFailure?.message).toMatch(/status (?:500|429)/);
    expect(JSON.stringify(failing.status)).not.toContain(canary);
    await waitFor(() => scene.operator.events.some(({ reason }) => reason === "DeliveryFailed"));

    scene.clock.jump(10_000);
    await scene.becomes(
      "slack",
      "limited",
      (each) => each.status?.lastFailure?.message.includes("status 429") ?? false,
    );
    scene.sink.responses.delete("slack");
    await scene.update("api", { failure: "second" });
    scene.clock.jump(60_000);
    expect(scene.sink.at("slack").length).toBe(2);
    scene.clock.jump(300_000);
    const [, , message] = await scene.receives("slack", 3);
    expect(textOf(message)).toContain("2 updates failed");
    await scene.becomes("slack", "ready", (each) => isReady(each) && each.status?.delivered === 2);
    expect(scene.operator.events.filter(({ reason }) => reason === "DeliveryFailed").length).toBe(1);
  });

  test("loses what is older than an hour, and reports how much", async () => {
    await using scene = await NotificationScene.open();
    await scene.notification("slack");
    scene.sink.responses.set(
      "slack",
      () => new Response("", { status: 307, headers: { location: "http://127.0.0.1:1/" } }),
    );
    await scene.update("web", { failure: "first" });
    scene.clock.jump(groupMs);
    await scene.becomes("slack", "failing", (each) => each.status?.lastFailure?.message.includes("redirect") ?? false);
    scene.clock.jump(3_700_000);
    const { status } = await scene.becomes("slack", "dropped", (each) => each.status?.dropped === 1);
    expect(status?.delivered).toBeUndefined();
    await waitFor(() => scene.operator.events.some(({ reason }) => reason === "NotificationsDropped"));
    expect(scene.operator.metrics.expose()).toContain("notification_events_dropped_total 1");
  });

  test("and hangs delays no other, and is given up", async () => {
    await using scene = await NotificationScene.open({ sendTimeoutMs: 2000 });
    await scene.notification("hanging", { groupSeconds: 0 });
    await scene.notification("slack", { groupSeconds: 0 });
    scene.sink.responses.set("hanging", () => new Promise<Response>(() => undefined));
    await scene.update("web", { failure: "first" });
    await scene.receives("hanging", 1);
    await scene.receives("slack", 1);
    await scene.becomes("slack", "delivered", (each) => each.status?.delivered === 1);
    const { status } = await scene.becomes("hanging", "failing", (each) => readyReason(each) === "DeliveryFailed");
    expect(status?.lastFailure?.message).toContain("did not respond within 2 seconds");
  });
});

test("a Secret that is missing or wrong is reported, and a new one is used for what waited", async () => {
  await using scene = await NotificationScene.open();
  await scene.apply("slack", { type: "Slack", secretRef: { name: "slack" }, groupSeconds: 0 });
  await scene.becomes("slack", "stalled", (each) => stallOf(each) === "SecretMissing");
  await scene.update("web", { failure: "first" });
  await scene.secret("slack", { url: `ftp://${canary}` });
  scene.clock.jump(70_000);
  const stalled = await scene.becomes("slack", "stalled", (each) => stallOf(each) === "TargetInvalid");
  expect(JSON.stringify(stalled.status)).not.toContain(canary);
  await scene.secret("slack", { url: scene.sink.url("slack") });
  scene.clock.jump(70_000);
  const [message] = await scene.receives("slack", 1);
  expect(textOf(message)).toContain("first");
});

test("what happens while a Notification is suspended is not reported later", async () => {
  await using scene = await NotificationScene.open();
  await scene.notification("slack", { groupSeconds: 0, suspend: false });
  await scene.apply("slack", { type: "Slack", secretRef: { name: "slack" }, groupSeconds: 0, suspend: true });
  await scene.becomes("slack", "suspended", (each) => readyReason(each) === "NotificationSuspended");
  await scene.update("web", { failure: "meanwhile" });
  scene.clock.jump(5000);
  await scene.apply("slack", { type: "Slack", secretRef: { name: "slack" }, groupSeconds: 0 });
  await scene.becomes("slack", "ready", isReady);
  await scene.update("api", { failure: "later" });
  const [message] = await scene.receives("slack", 1);
  expect(textOf(message)).toContain("later");
  expect(textOf(message)).not.toContain("meanwhile");
});

test("the API server rejects specs that cannot work, with an explanation", async () => {
  await using scene = await NotificationScene.open();
  const errorOf = async (spec: object): Promise<string> => {
    const object = { apiVersion: notifications.apiVersion, kind: notifications.kind, metadata: scene.ref("x"), spec };
    try {
      await scene.client.create(notifications, object as Parameters<typeof scene.client.create<never>>[1]);
      return "";
    } catch (error) {
      if (isInvalid(error)) return error.explanation;
      throw error;
    }
  };
  expect(await errorOf({ type: "Slack" })).toContain("create a Secret with the key url");
  expect(await errorOf({ type: "Slack", url: "https://x.example", secretRef: { name: "x" } })).toContain("spec.url");
  expect(await errorOf({ type: "CloudEvents", url: "https://user:pw@x.example" })).toContain("no user or password");
  expect(await errorOf({ type: "CloudEvents", url: "x.example" })).toContain("must start with https://");
  expect(await errorOf({ type: "Mail", secretRef: { name: "x" } })).toContain("spec.type");
  expect(await errorOf({ type: "Slack", secretRef: { name: "x" }, filter: { kinds: ["Nonsense"] } })).toContain(
    "kinds",
  );
});
