/** The examples that need only a cluster: each becomes ready with the expected outputs. */
import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";

import type { Stack } from "@pko/api";
import { layout, publishImage, stateRoot } from "@pko/cluster";

import {
  at,
  createClass,
  hasReason,
  isReady,
  kubectl,
  readOutput,
  requestReconcile,
  smallResources,
  stackUntil,
  useScene,
} from "../harness.ts";

const slow = 480_000;
const folder = join(import.meta.dir, "../../../examples");

type Outputs = NonNullable<NonNullable<Stack["status"]>["outputs"]>;

/** Example → Stack → its outputs. */
const expectedOutputs: Readonly<Record<string, Readonly<Record<string, Outputs>>>> = {
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
  prerequisites: { network: { range: "10.0.0.0/16" }, database: { name: "orders" } },
  "stack-output": {
    platform: { endpoint: "https://platform.eu-west-1.example.com", token: "[secret]" },
    tenant: { connectedTo: "[secret]" },
  },
  previews: { website: { page: "<h1>Hello</h1>" }, "website-preview": { page: "<h1>Hello, world</h1>" } },
  timeouts: { "nightly-report": { text: "all is well" } },
  drift: { addresses: { range: "10.0.0.0/16" }, firewall: { allowed: "10.0.0.0/16" } },
  retries: { inventory: { value: 12 } },
  "deletion-order": { site: { value: "eu-1" }, building: { value: "b 7" }, office: { value: "room 12" } },
  "custom-image": { "custom-image": { greeting: "hello from the image" } },
  "custom-source": { "custom-source": { greeting: "hello from an init container" } },
  "init-containers": { "init-containers": { value: "[secret]" } },
};

const scene = useScene("examples");

beforeAll(async () => {
  await createClass(scene, { template: { spec: { resources: smallResources } } });
  await buildCustomImage();
}, slow);

/** Builds the image of the example under the name that its Stack uses. */
async function buildCustomImage(): Promise<void> {
  const context = join(folder, "custom-image");
  const name = "registry.example.com/my-team/workspace:1.0";
  await publishImage({ name, containerfile: join(context, "Containerfile"), context }, layout(stateRoot).images);
}

describe("kubectl apply deploys the example", () => {
  for (const [example, stacks] of Object.entries(expectedOutputs)) {
    test.concurrent(
      example,
      async () => {
        await kubectl(["apply", ...at(scene), "-f", join(folder, example)]);
        for (const [stack, outputs] of Object.entries(stacks)) {
          const { status } = await stackUntil(scene, stack, isReady);
          expect(status?.outputs).toEqual(outputs);
        }
      },
      slow,
    );
  }
});

test(
  "the example with update windows is deployed while they are ignored",
  async () => {
    await kubectl(["apply", ...at(scene), "-f", join(folder, "update-windows")]);
    const until = "pulumi.com/ignore-update-windows-until=2100-01-01T00:00:00Z";
    await kubectl(["annotate", "stack", "nightly", ...at(scene), until]);
    const { status } = await stackUntil(scene, "nightly", isReady);
    expect(status?.outputs).toEqual({ page: "<h1>Good night</h1>" });
  },
  slow,
);

test(
  "the example of a suspended Stack is deployed when it is resumed",
  async () => {
    await kubectl(["apply", ...at(scene), "-f", join(folder, "suspend")]);
    await stackUntil(scene, "newsletter", hasReason("Suspended"));
    const patch = JSON.stringify({ spec: { suspend: false } });
    await kubectl(["patch", "stack", "newsletter", ...at(scene), "--type=merge", "--patch", patch]);
    const { status } = await stackUntil(scene, "newsletter", isReady);
    expect(status?.outputs).toEqual({ value: "issue 1" });
  },
  slow,
);

test(
  "an update that is requested right after a Secret changes uses the new value",
  async () => {
    await kubectl(["apply", ...at(scene), "-f", join(folder, "program")]);
    await stackUntil(scene, "shop", isReady);
    const patch = JSON.stringify({ stringData: { password: "changed" } });
    await kubectl(["patch", "secret", "shop-admin", ...at(scene), "--patch", patch]);
    await requestReconcile(scene, "shop", "changed");
    await stackUntil(scene, "shop", ({ status }) => status?.lastUpdate?.reconcileRequest === "changed");
    expect(await readOutput(scene, "shop", "adminPassword")).toBe("changed");
  },
  slow,
);
