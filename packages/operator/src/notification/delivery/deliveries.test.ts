import { expect, test } from "bun:test";
import { metricsRegistry, silentLogger, type Key } from "@pko/kube";

import { now, occurrenceAt } from "../testing/views.ts";
import { Deliveries, maxInNamespace, type Delivery } from "./deliveries.ts";
import type { Sent } from "./send.ts";

const occurrences = [occurrenceAt(now)];
const deliveryTo = (host: string): Delivery => ({
  target: { url: new URL(`https://${host}/`) },
  payload: { contentType: "application/json", body: "{}" },
  occurrences,
  type: "Slack",
});

/** Deliveries that end when the test says so. */
function controlled() {
  const open = new Map<string, PromiseWithResolvers<Sent>>();
  const order: string[] = [];
  const woken: Key[] = [];
  const metrics = metricsRegistry();
  const deliveries = new Deliveries({
    log: silentLogger,
    metrics,
    send({ url }, _, signal) {
      const result = Promise.withResolvers<Sent>();
      signal.addEventListener("abort", () => result.reject(signal.reason));
      open.set(url.host, result);
      order.push(url.host);
      return result.promise;
    },
  });
  deliveries.wake = (key) => void woken.push(key);
  const end = async (host: string, sent: Sent = { result: "delivered" }): Promise<void> => {
    open.get(host)?.resolve(sent);
    await Bun.sleep(0);
  };
  return {
    deliveries,
    order,
    woken,
    metrics,
    end,
    fail: (host: string) => open.get(host)?.reject(new Error("broken")),
  };
}

test("the end of a delivery wakes its Notification, which records the result once", async () => {
  const { deliveries, woken, end, metrics } = controlled();
  expect(deliveries.stateOf("prod/chat")).toEqual({ kind: "none" });
  deliveries.start("prod/chat", deliveryTo("chat"));
  deliveries.start("prod/chat", deliveryTo("again"));
  expect(deliveries.stateOf("prod/chat")).toEqual({ kind: "sending" });
  await end("chat");
  expect(woken).toEqual(["prod/chat"]);
  expect(deliveries.stateOf("prod/chat")).toEqual({ kind: "ended", sent: { result: "delivered" }, occurrences });
  deliveries.recorded("prod/chat");
  expect(deliveries.stateOf("prod/chat")).toEqual({ kind: "none" });
  expect(metrics.expose()).toContain('notification_deliveries_total{type="Slack",result="delivered"} 1');
});

test("sinks that hang delay only those of their own namespace", async () => {
  const { deliveries, order, end } = controlled();
  for (let index = 0; index < 5; index++) deliveries.start(`noisy/chat-${index}`, deliveryTo(`noisy-${index}`));
  expect(order).toEqual(["noisy-0", "noisy-1"]);
  expect(order.length).toBe(maxInNamespace);
  deliveries.start("quiet/chat", deliveryTo("quiet"));
  expect(order.at(-1)).toBe("quiet");
  await end("noisy-1");
  expect(order.at(-1)).toBe("noisy-2");
});

test("a Notification that is deleted is not sent, and its result is ignored", async () => {
  const { deliveries, order, woken, end } = controlled();
  for (const name of ["a", "b", "c"]) deliveries.start(`prod/${name}`, deliveryTo(name));
  deliveries.forget("prod/c");
  deliveries.forget("prod/a");
  await end("a");
  await end("b");
  expect([order, woken]).toEqual([["a", "b"], ["prod/b"]]);
});

test("an unexpected error is a failure like others, and does not block the namespace", async () => {
  const { deliveries, fail, order } = controlled();
  for (const name of ["a", "b", "c"]) deliveries.start(`prod/${name}`, deliveryTo(name));
  fail("a");
  await Bun.sleep(0);
  expect(deliveries.stateOf("prod/a")).toMatchObject({ kind: "ended", sent: { result: "unreachable" } });
  expect(order).toEqual(["a", "b", "c"]);
});

test("when this replica stops leading, everything ends", async () => {
  const { deliveries, order, woken, end } = controlled();
  for (const name of ["a", "b", "c"]) deliveries.start(`prod/${name}`, deliveryTo(name));
  deliveries.clear();
  await end("a");
  await end("b");
  expect([order, woken, deliveries.stateOf("prod/a").kind]).toEqual([["a", "b"], [], "none"]);
});
