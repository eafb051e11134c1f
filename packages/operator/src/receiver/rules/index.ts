/** What to do for a Receiver: the first rule that applies decides. Pure. */
import { firstDecision, type Plan } from "@pko/kube";

import { pathOf } from "../../webhooks/paths.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import { secretKeyOf } from "../secret-key.ts";
import type { ReceiverView } from "../view.ts";

export type ReceiverPlan = Plan<never, Outcome>;
type ReceiverRule = (view: ReceiverView) => ReceiverPlan | undefined;

const wait = (outcome: Outcome): ReceiverPlan => ({ steps: [], outcome });

function webhooksDisabled({ isServed }: ReceiverView): ReceiverPlan | undefined {
  if (isServed) return undefined;
  return wait({ kind: "stalled", reason: "WebhooksDisabled", message: messages.webhooksDisabled });
}

function secretMissing({ receiver, secret }: ReceiverView): ReceiverPlan | undefined {
  const { name } = receiver.spec.secretRef;
  switch (secret.kind) {
    case "missing":
      return wait({ kind: "stalled", reason: "SecretMissing", message: messages.secretMissing(name) });
    case "keyMissing": {
      const message = messages.secretKeyMissing(name, secretKeyOf(receiver));
      return wait({ kind: "stalled", reason: "SecretMissing", message });
    }
    case "forbidden":
      return wait({ kind: "stalled", reason: "SecretMissing", message: messages.secretForbidden(name) });
    case "read":
      return undefined;
  }
}

function secretTooShort({ receiver, secret }: ReceiverView): ReceiverPlan | undefined {
  if (secret.kind !== "read" || secret.bytes.length >= messages.minSecretLength) return undefined;
  const message = messages.secretTooShort(receiver.spec.secretRef.name, secretKeyOf(receiver));
  return wait({ kind: "stalled", reason: "SecretTooShort", message });
}

/** Applies to every view. The rules before it leave a Receiver with a secret. */
function receiving({ receiver, secret }: ReceiverView): ReceiverPlan {
  const message = messages.receiving(receiver.spec.type, pathOf(receiver));
  return wait({ kind: "receiving", message, secret: secret.kind === "read" ? secret.bytes : Buffer.alloc(0) });
}

const rules: readonly ReceiverRule[] = [
  webhooksDisabled, // webhooks are disabled in the operator: report it
  secretMissing, // the Secret or its key does not exist, or may not be read: accept nothing
  secretTooShort, // the secret could be guessed: accept nothing
  receiving, // accept webhooks, and record the last ones
];

export const planReceiver = (view: ReceiverView): ReceiverPlan => firstDecision(rules, view);
