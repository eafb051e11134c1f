import { expect, test } from "bun:test";
import type { Client } from "@pko/kube";
import { selfSignedCertificate } from "@pko/rpc/pki";

import { targetIn, Targets } from "./targets.ts";
import { notification } from "./testing/views.ts";
import { basisOf } from "./view.ts";

const encoded = (data: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]));
const url = "https://hooks.example.com/path";

test.each([
  ["no URL", {}, undefined, "urlMissing"],
  ["an empty URL", { url: "\n" }, undefined, "urlMissing"],
  ["a text that is no URL", { url: "hooks" }, undefined, "urlInvalid"],
  ["another scheme", { url: "file:///etc/passwd" }, undefined, "urlInvalid"],
  ["a URL with a password", { url: "https://user:password@example.com" }, undefined, "urlInvalid"],
  ["an invalid port in the spec", {}, "https://example.com:99999", "urlInvalid"],
  ["a token with a line break", { url, token: "a\nb" }, undefined, "tokenInvalid"],
  ["CA certificates that are none", { url, caCert: "nonsense" }, undefined, "caInvalid"],
  [
    "CA certificates that are broken",
    { url, caCert: "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----" },
    undefined,
    "caInvalid",
  ],
  ["a URL with a line break at its end", { url: `${url}\n` }, undefined, "usable"],
  ["a URL in the spec", undefined, url, "usable"],
  ["a URL in the spec, and a token in the Secret", { token: "token" }, url, "usable"],
] as const)("%s", (...row) => {
  const [, data, specUrl, kind] = row;
  expect(targetIn(data && encoded(data), specUrl).kind).toBe(kind);
});

test("the token and the CA certificates are those of the Secret", async () => {
  const { cert } = await selfSignedCertificate("sink", new Date());
  const found = targetIn(encoded({ url, token: " token\n", caCert: cert }), undefined);
  expect(found).toEqual({ kind: "usable", target: { url: new URL(url), token: "token", ca: cert.trim() } });
});

test("the target of a Notification that is created again with the same name is read again", async () => {
  const targets = new Targets({} as Client);
  const { signal } = new AbortController();
  const { secretRef: _, ...spec } = notification().spec;
  const at = (uid: string, path: string) => {
    const { metadata, ...rest } = notification();
    const url = `https://hooks.example.com/${path}`;
    return targets.read({ ...rest, metadata: { ...metadata, uid }, spec: { ...spec, url } }, signal);
  };
  const shown = async (uid: string, path: string) => {
    const { view } = await at(uid, path);
    return view.kind === "usable" ? view.target.url.pathname : view.kind;
  };
  expect(await shown("one", "old")).toBe("/old");
  expect(await shown("one", "unread")).toBe("/old");
  expect(await shown("two", "new")).toBe("/new");
});

test("the failures of a Notification are not those of one that is created again with the same name", () => {
  const { metadata, ...rest } = notification();
  const again = { ...rest, metadata: { ...metadata, uid: "another" } };
  expect(basisOf({ notification: again })).not.toBe(basisOf({ notification: notification() }));
});
