import { expect, test } from "bun:test";
import { metricsRegistry } from "@pko/kube";
import { createAuthorities } from "@pko/rpc/pki";

import { exposeExpiry } from "./certificate-expiry.ts";

test("exposes when the current certificate expires, and nothing without a valid one", async () => {
  const metrics = metricsRegistry();
  let current: string | undefined;
  exposeExpiry(metrics, "ca", () => current);
  exposeExpiry(metrics, "webhook", () => "not a certificate");
  const series = () => metrics.expose().match(/^certificate_expiry_timestamp_seconds\{.*$/gm) ?? [];
  expect(series()).toEqual([]);

  const created = Date.UTC(2026, 0, 1);
  const [authority] = await createAuthorities(new Date(created));
  current = authority?.cert;
  const year = Date.UTC(2027, 0, 1) / 1000;
  expect(series()).toEqual([`certificate_expiry_timestamp_seconds{certificate="ca"} ${year}`]);

  current = undefined;
  expect(series()).toEqual([]);
});
