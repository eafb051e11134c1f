import { expect, test } from "bun:test";
import type { Receiver, ReceiverSpec } from "@pko/api";

import { secretView } from "./observe.ts";
import { planReceiver } from "./rules/index.ts";
import { receiverStatus } from "./status.ts";
import type { ReceiverView } from "./view.ts";

const now = Date.UTC(2030, 0, 1);
const spec: ReceiverSpec = { type: "GitHub", secretRef: { name: "hooks" } };
const receiver: Receiver = {
  apiVersion: "auto.pulumi.com/v1alpha1",
  kind: "Receiver",
  metadata: { name: "github", namespace: "default", uid: "uid-1", generation: 3 },
  spec,
};

const viewOf = (changes: Partial<ReceiverView> = {}): ReceiverView => ({
  now,
  receiver,
  isServed: true,
  secret: { kind: "read", bytes: Buffer.from("0123456789abcdef") },
  secretObject: { kind: "Secret", namespace: "default", name: "hooks", version: "1" },
  deliveries: {},
  ...changes,
});

const statusOf = (view: ReceiverView) => receiverStatus(view, planReceiver(view));

const cases: readonly (readonly [string, Partial<ReceiverView>, string, string])[] = [
  ["accepts webhooks", {}, "Receiving", "Webhooks of type GitHub are accepted at the path /hooks/"],
  ["needs an operator that serves webhooks", { isServed: false }, "WebhooksDisabled", "webhook.enabled"],
  ["needs its Secret", { secret: { kind: "missing" } }, "SecretMissing", "Secret hooks does not exist"],
  ["needs the key", { secret: { kind: "keyMissing" } }, "SecretMissing", "Secret hooks has no key token"],
  ["needs permission", { secret: { kind: "forbidden" } }, "SecretMissing", "the operator may not read Secret hooks"],
  [
    "needs a long secret",
    { secret: { kind: "read", bytes: Buffer.from("0123456789abcde") } },
    "SecretTooShort",
    "fewer than 16",
  ],
];
test.each(cases)("a Receiver %s", (...row) => {
  const [, changes, reason, message] = row;
  const { conditions = [] } = statusOf(viewOf(changes));
  const last = conditions.at(-1);
  expect(last?.reason).toBe(reason);
  expect(last?.message).toContain(message);
  expect(conditions[0]).toMatchObject({ type: "Ready", status: reason === "Receiving" ? "True" : "False" });
});

test("webhooks are checked with the secret that was read", () => {
  const bytes = Buffer.from("another secret of a forge");
  expect(planReceiver(viewOf({ secret: { kind: "read", bytes } })).outcome).toMatchObject({ secret: bytes });
});

test.each([
  ["text without its line break", "a secret\r\n", "a secret"],
  ["nothing but line breaks as empty", "\n\n", ""],
  ["binary as it is", Buffer.from([0xff, 0x0a, 0xfe]), Buffer.from([0xff, 0x0a, 0xfe])],
])("the secret is read: %s", (_, stored, expected) => {
  const data = { token: Buffer.from(stored as string).toString("base64") };
  expect(secretView(data, "token")).toEqual({ kind: "read", bytes: Buffer.from(expected as string) });
});

test("the status has the path, which depends on the UID alone and does not reveal it", () => {
  const { path = "" } = statusOf(viewOf());
  expect(path).toMatch(/^\/hooks\/[0-9a-f]{32}$/);
  expect(statusOf(viewOf({ secret: { kind: "missing" } })).path).toBe(path);
  const other = { ...receiver, metadata: { ...receiver.metadata, uid: "uid-2" } };
  expect(statusOf(viewOf({ receiver: other })).path).not.toBe(path);
});

test("the status shows the last delivery and the last rejection, also those that an earlier leader has recorded", () => {
  const delivery = { at: now, repository: "https://git.example/web", stacks: 2 };
  const first = statusOf(viewOf({ deliveries: { delivery } }));
  expect(first.lastDelivery).toEqual({
    time: "2030-01-01T00:00:00Z",
    repository: "https://git.example/web",
    stacks: 2,
  });
  const later = { ...receiver, status: first };
  const second = statusOf(viewOf({ receiver: later, deliveries: { rejection: { at: now, reason: "badSignature" } } }));
  expect(second.lastDelivery).toEqual(first.lastDelivery ?? { time: "" });
  expect(second.lastRejection).toEqual({ time: "2030-01-01T00:00:00Z", reason: "badSignature" });
});
