import { describe, expect, test } from "bun:test";

import { hostProblem, isSecure, originProblem, type Origins } from "./origin.ts";

const local: Origins = { hosts: ["pulumi-x.localhost:8001", "127.0.0.1:8001", "localhost:8001"], loopback: false };
const inCluster: Origins = { hosts: ["pulumi.example.com"], loopback: true };
const anywhere: Origins = { loopback: true };

describe("the header Host", () => {
  for (const [host, origins, isAccepted] of [
    ["127.0.0.1:8001", local, true],
    ["pulumi-x.localhost:8001", local, true],
    ["LOCALHOST:8001", local, true],
    // DNS rebinding.
    ["attacker.example:8001", local, false],
    ["127.0.0.1.attacker.example:8001", local, false],
    ["localhost:8002", local, false],
    ["localhost", local, false],
    ["pulumi-y.localhost:8001", local, false],
    // Two headers.
    ["127.0.0.1:8001, attacker.example", local, false],
    ["", local, false],
    ["pulumi.example.com", inCluster, true],
    ["attacker.example", inCluster, false],
    // kubectl port-forward.
    ["localhost:9999", inCluster, true],
    ["localhost.attacker.example:9999", inCluster, false],
    ["anything.example", anywhere, true],
    ["a, b", anywhere, false],
    ["", anywhere, false],
  ] as const) {
    test(`${isAccepted ? "accepts" : "refuses"} ${host || "none"}`, () => {
      expect(hostProblem(new Headers({ host }), origins)?.status).toBe(isAccepted ? undefined : 403);
    });
  }
});

const header = { "x-pulumi-console": "1" };
const own = { host: "127.0.0.1:8001", origin: "http://127.0.0.1:8001" };

describe("the origin of a request", () => {
  for (const [name, method, headers, origins, isAccepted] of [
    ["a read without Origin", "GET", { host: "127.0.0.1:8001" }, local, true],
    ["a read of the page", "GET", { ...own, "sec-fetch-site": "same-origin" }, local, true],
    ["an address that was typed", "GET", { host: "127.0.0.1:8001", "sec-fetch-site": "none" }, local, true],
    ["a read of another site", "GET", { host: "127.0.0.1:8001", "sec-fetch-site": "cross-site" }, local, false],
    ["a read of another port", "GET", { host: "127.0.0.1:8001", "sec-fetch-site": "same-site" }, local, false],
    ["a read with a foreign Origin", "GET", { ...own, origin: "https://attacker.example" }, local, false],
    ["a write of the page", "POST", { ...own, ...header }, local, true],
    ["a write without the console's header", "POST", own, local, false],
    ["a write with another value of it", "PATCH", { ...own, "x-pulumi-console": "2" }, local, false],
    ["a write without Origin", "POST", { host: "127.0.0.1:8001", ...header }, local, false],
    ["a write of a page without origin", "POST", { ...own, ...header, origin: "null" }, local, false],
    ["a write of another port", "POST", { ...own, ...header, origin: "http://127.0.0.1:8002" }, local, false],
    ["a write of another site", "DELETE", { ...own, ...header, origin: "https://attacker.example" }, local, false],
    [
      "an Origin that contains the host",
      "POST",
      { ...own, ...header, origin: "http://a/127.0.0.1:8001" },
      local,
      false,
    ],
    ["an Origin with a user", "POST", { ...own, ...header, origin: "http://a@127.0.0.1:8001" }, local, false],
    [
      "a write through a proxy that replaces Host",
      "POST",
      { host: "console.svc", origin: "https://pulumi.example.com", ...header },
      inCluster,
      true,
    ],
    ["a write by rebinding", "POST", { ...header, host: "x.example", origin: "https://y.example" }, anywhere, false],
  ] as const) {
    test(`${name} is ${isAccepted ? "accepted" : "refused"}`, () => {
      const problem = originProblem({ method, headers: new Headers(headers) }, origins);
      expect(problem?.status).toBe(isAccepted ? undefined : 403);
    });
  }
});

test("the first proxy decides whether the browser's connection is encrypted", () => {
  const secure = (value: string): boolean => isSecure(new Headers({ "x-forwarded-proto": value }));
  expect([secure("https"), secure("https, http"), secure("http, https"), secure("")]).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
