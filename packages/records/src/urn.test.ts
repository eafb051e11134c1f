import { expect, test } from "bun:test";

import { urnName, urnType } from "./urn.ts";

test("a type is without the types of its parents, and a name may contain colons", () => {
  expect(urnType("urn:pulumi:dev::demo::my:component:C$aws:s3/bucket:Bucket::logs")).toBe("aws:s3/bucket:Bucket");
  expect(urnName("urn:pulumi:dev::demo::a:b:C::name::with::colons")).toBe("name::with::colons");
});
