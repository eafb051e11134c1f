/** A Receiver for webhooks about pushes, and their sender. Only this operator has webhooks. */
import { createHmac, randomUUID } from "node:crypto";

import type { Bed } from "./bed.ts";
import type { Operator } from "./operator.ts";

export interface WebhookSender {
  /** Returns when the operator has accepted the webhook. */
  report(repository: string, branch: string): Promise<void>;
}

const name = "bench";

/** Undefined if the operator serves no webhooks. */
export async function openReceiver(bed: Bed, operator: Operator): Promise<WebhookSender | undefined> {
  const { spec, status } = await operator.pod(bed.signal);
  const ports = spec?.containers.flatMap((container) => container.ports ?? []) ?? [];
  const port = ports.find((each) => each.name === "https-webhook")?.containerPort;
  if (port === undefined) return undefined;
  const { namespace } = bed;
  const token = randomUUID();
  await bed.apply(
    { apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, stringData: { token } },
    {
      apiVersion: "auto.pulumi.com/v1alpha1",
      kind: "Receiver",
      metadata: { name, namespace },
      spec: { type: "Generic", secretRef: { name } },
    },
  );
  const where = ["receiver", name, "-n", namespace];
  await bed.kubectl(["wait", ...where, "--for=condition=Ready", "--timeout=60s"]);
  const path = await bed.kubectl(["get", ...where, "-o", "jsonpath={.status.path}"]);
  const url = `https://${status?.podIP}:${port}${path}`;
  return {
    async report(repository, branch) {
      const body = JSON.stringify({ repository, ref: `refs/heads/${branch}` });
      const signature = createHmac("sha256", token).update(body).digest("hex");
      const response = await fetch(url, {
        method: "POST",
        body,
        headers: { "X-Signature": `sha256=${signature}` },
        // Without a certificate of the user's own, the endpoint's only encrypts.
        tls: { rejectUnauthorized: false },
      });
      if (response.status !== 202) throw new Error(`the webhook was answered with ${response.status}`);
    },
  };
}
