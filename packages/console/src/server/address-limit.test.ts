import { manualClock } from "@pko/kube";
import { expect, test } from "bun:test";

import { AddressLimit } from "./address-limit.ts";

const limit = () => new AddressLimit({ burst: 2, refillMs: 1000, clock: manualClock() });

test("an address that has used its limit does not affect others", () => {
  const limited = limit();
  expect([1, 2, 3].map(() => limited.take("10.0.0.1"))).toEqual([true, true, false]);
  expect(limited.take("10.0.0.2")).toBe(true);
});

test.each([
  ["addresses of an IPv6 /64 network share a limit", ["2001:db8::1", "2001:db8:0:0:a::2", "2001:db8::3"], false],
  ["other IPv6 networks do not", ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::3"], true],
  ["IPv4 addresses of an IPv6 socket do not", ["::ffff:10.0.0.1", "::ffff:10.0.0.2", "::ffff:10.0.0.3"], true],
])("%s", (_, addresses, isLastAllowed) => {
  const limited = limit();
  expect(addresses.map((address) => limited.take(address))).toEqual([true, true, isLastAllowed]);
});
