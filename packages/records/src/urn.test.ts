import { expect, test } from "bun:test";

import { providerUrn, urnName, urnType } from "./urn.ts";

test("a type is without the types of its parents, and a name may contain colons", () => {
  expect(urnType("urn:pulumi:dev::demo::my:component:C$aws:s3/bucket:Bucket::logs")).toBe("aws:s3/bucket:Bucket");
  expect(urnName("urn:pulumi:dev::demo::a:b:C::name::with::colons")).toBe("name::with::colons");
});

test("a reference to a provider is its URN and its ID", () => {
  const urn = "urn:pulumi:dev::demo::pulumi:providers:aws::default_6_0";
  expect(providerUrn(`${urn}::8d4b9d5c-2a0e-4a43-9f7b-6a1d0e6a9f55`)).toBe(urn);
  expect(providerUrn("")).toBe("");
});
