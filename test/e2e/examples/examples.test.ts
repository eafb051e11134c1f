/** The examples that need nothing but a cluster, applied as their pages say: each turns Ready with the outputs that it promises. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";

import type { Stack } from "@pko/api";

import {
  isReady,
  kubectl,
  newNamespace,
  removeNamespace,
  stackUntil,
  startOperator,
  type Operator,
  type Place,
} from "../harness.ts";

const slow = 240_000;
const folder = join(import.meta.dir, "../../../examples");

type Outputs = NonNullable<NonNullable<Stack["status"]>["outputs"]>;

/** Example → Stack → its outputs. */
const promised: Readonly<Record<string, Readonly<Record<string, Outputs>>>> = {
  program: {
    shop: {
      address: "https://shop.example.com",
      release: "shop.example.com sells apples for EUR",
      adminPassword: "[secret]",
    },
  },
  "structured-config": {
    "structured-config": {
      environment: "production",
      port: 5432,
      secondRegion: "us-east-1",
      maxConnections: 100,
      enableCaching: true,
      perSecond: 20,
    },
  },
};

let operator: Operator;
let place: Place;

beforeAll(async () => {
  const namespace = await newNamespace("examples");
  operator = await startOperator([namespace]);
  place = { client: operator.client, namespace };
}, slow);

afterAll(async () => {
  // First the Stacks, as the pages tell: their state must still be there when they are destroyed.
  await kubectl(["delete", "stacks", "--all", "-n", place.namespace, "--timeout=120s"]);
  await removeNamespace(place.namespace);
  await operator.stop();
}, slow);

describe("kubectl apply -f examples/…", () => {
  for (const [example, stacks] of Object.entries(promised)) {
    test.concurrent(
      example,
      async () => {
        await kubectl(["apply", "-n", place.namespace, "-f", join(folder, example)]);
        for (const [stack, outputs] of Object.entries(stacks)) {
          const { status } = await stackUntil(place, stack, isReady);
          expect(status?.outputs).toEqual(outputs);
        }
      },
      slow,
    );
  }
});
