/** A small company: the objects of the screenshots, and of the tests of every page. */
import { encodeContent, type NumberedEvent, type RecordContent, type RunEvent } from "@pko/records";

import { ago, ahead, drifted, ready, reconciling, stalled, type BrowserStage } from "./browser-stage.ts";

export const shop = "shop";
const urn = (type: string, name: string): string => `urn:pulumi:dev::shop::${type}::${name}`;
const root = urn("pulumi:pulumi:Stack", "shop-dev");
const vpc = urn("aws:ec2/vpc:Vpc", "main");
const subnet = urn("aws:ec2/subnet:Subnet", "private-a");
const database = urn("aws:rds/instance:Instance", "orders");
const bucket = urn("aws:s3/bucket:Bucket", "invoices");

const start = 600;

/** Events of a run that started `from` seconds ago; each with the second at which it happened. */
function numbered(from: number, events: readonly (readonly [second: number, event: RunEvent])[]): NumberedEvent[] {
  return events.map(([second, event], at) => ({ seq: at + 1, time: ago(from - second), event }));
}

const step = (
  op: string,
  urn: string,
  [phase, durationMs]: readonly ["started" | "finished" | "failed", number?],
): RunEvent => ({
  kind: "resource",
  phase,
  op,
  urn,
  resourceType: urn.split("::")[2] ?? "",
  ...(durationMs !== undefined && { durationMs }),
});

const failedEvents = numbered(start, [
  [0, { kind: "step", name: "up" }],
  [1, step("same", root, ["finished", 10])],
  [1, step("create", vpc, ["started"])],
  [5, step("create", vpc, ["finished", 4000])],
  [5, step("create", subnet, ["started"])],
  [5, step("create", bucket, ["started"])],
  [8, step("create", bucket, ["finished", 3000])],
  [19, step("create", subnet, ["failed", 14_000])],
  [
    19,
    {
      kind: "diagnostic",
      severity: "error",
      message: "creating EC2 Subnet: InvalidSubnet.Conflict: the CIDR '10.0.1.0/24' conflicts with another subnet",
      urn: subnet,
    },
  ],
  [20, { kind: "diagnostic", severity: "warning", message: "the property tags.owner is deprecated", urn: bucket }],
  [20, { kind: "summary", changes: { create: 2, same: 1 }, durationSeconds: 20, result: "failed" }],
]);

const firstEvents = numbered(90_000, [
  [0, { kind: "step", name: "up" }],
  [1, step("create", root, ["finished", 10])],
  [2, step("create", vpc, ["started"])],
  [7, step("create", vpc, ["finished", 5000])],
  [8, { kind: "summary", changes: { create: 2 }, durationSeconds: 8, result: "succeeded" }],
]);

const planEvents = numbered(900, [
  [0, { kind: "step", name: "preview" }],
  [
    1,
    {
      kind: "resource",
      phase: "finished",
      op: "replace",
      urn: database,
      resourceType: "aws:rds/instance:Instance",
      changes: [
        { path: "engineVersion", kind: "update-replace", old: '"15.4"', new: '"16.1"' },
        { path: "password", kind: "update", old: '"[secret]"', new: '"[secret]"' },
      ],
      replaceKeys: ["engineVersion"],
    },
  ],
  [1, step("create", bucket, ["finished", 1])],
]);

const content = async (part: Partial<RecordContent>): Promise<string> =>
  await encodeContent({
    version: 1,
    events: [],
    resources: [],
    omitted: { events: 0, resources: 0, values: 0 },
    ...part,
  });

const condition = (type: string, status: "True" | "False", reason: string) => ({
  type,
  status,
  reason,
  message: "",
  lastTransitionTime: ago(60),
});

export async function openShop(stage: BrowserStage): Promise<void> {
  await stage.namespace(shop);
  await stage.lease(shop);
  await stage.replica(shop, "operator-0");
  await createStacks(stage);
  await createRuns(stage);
}

const updated = (name: string, secondsAgo: number) => ({
  lastUpdate: { name, type: "up", state: "succeeded", lastResyncTime: ago(secondsAgo) } as const,
});

async function createStacks(stage: BrowserStage): Promise<void> {
  const message = "creating EC2 Subnet: the CIDR '10.0.1.0/24' conflicts with another subnet";
  const repository = { projectRepo: "https://github.com/acme/infrastructure", branch: "main" };
  await stage.stack(
    `${shop}/network`,
    reconciling("RetryingAfterFailure", `The up network-2 failed: ${message}`, {
      lastUpdate: {
        name: "network-2",
        type: "up",
        state: "failed",
        message,
        failures: 2,
        failure: "programError",
        lastResyncTime: ago(start - 20),
        lastAttemptedCommit: "9c4f2d1",
        lastSuccessfulCommit: "77aa01b",
        summary: "2 created, 1 failed",
      },
      next: { what: "retry of the failed update", time: ahead(300) },
      outputs: { vpcId: "vpc-0a1b2c3d", region: "eu-central-1" },
    }),
    { ...repository, repoDir: "network", config: { "aws:region": "eu-central-1" } },
  );
  await stage.stack(
    `${shop}/database`,
    reconciling("AwaitingApproval", "The changes must be approved.", {
      approval: {
        state: "Pending",
        updateName: "database-plan",
        updateUid: "11111111-2222-3333-4444-555555555555",
        digest: "sha256:5f2c9e0d",
        trigger: "{}",
        summary: [
          "1 to replace, 1 to create",
          "replace  aws:rds/instance:Instance orders",
          "create   aws:s3/bucket:Bucket invoices",
        ].join("\n"),
        unknownInputs: 1,
        expiresAt: ahead(7200),
      },
      ...updated("database-1", 90_000),
      next: { what: "a new plan, when this one expires", time: ahead(7200) },
      waiting: { for: "an Approval of the plan of Update database-plan", since: ago(900) },
    }),
    {
      ...repository,
      repoDir: "database",
      approval: { required: "OnDestructiveChanges" },
      prerequisites: [{ name: "network" }],
      envRefs: { VPC_ID: { type: "StackOutput", stack: "network", output: "vpcId" } },
      secretsRef: { "db:password": { type: "Secret", secret: { name: "database", key: "password" } } },
    },
  );
  await stage.stack(`${shop}/website`, ready("The last update succeeded: 12 unchanged.", updated("website-3", 7200)), {
    ...repository,
    repoDir: "website",
    prerequisites: [{ name: "database" }],
  });
  await stage.stack(
    `${shop}/orders`,
    ready("The last update succeeded: 4 created.", {
      ...updated("orders-5", 18_000),
      conditions: [drifted("1 resource differs from the state: update orders (tags)")],
      drift: {
        checkedAt: ago(600),
        summary: "1 resource differs from the state",
        resources: [{ urn: database, operation: "update", properties: ["tags", "backupRetentionPeriod"] }],
      },
      outputs: { endpoint: "orders.example.com:5432", password: "[secret]", ports: [5432, 5433] },
    }),
    { ...repository, repoDir: "orders", prerequisites: [{ name: "database" }] },
  );
  await stage.stack(
    `${shop}/billing`,
    stalled("SourceUnavailable", "The repository cannot be read: authentication failed."),
    {
      projectRepo: "https://github.com/acme/billing",
      branch: "main",
    },
  );
  await stage.stack(
    `${shop}/search`,
    reconciling("StackProcessing", "Update search-7 is running.", {
      ...updated("search-6", 14_400),
      currentUpdate: { name: "search-7", commit: "b7e6f5a" },
    }),
    repository,
  );
}

async function createRuns(stage: BrowserStage): Promise<void> {
  await stage.update(`${shop}/search-7`, "search", {
    status: {
      startTime: ago(45),
      progress: { time: ago(1), created: 3, updated: 0, deleted: 0, replaced: 0, unchanged: 9, failed: 0, percent: 60 },
    },
  });
  await stage.update(`${shop}/network-2`, "network", {
    spec: { message: `Stack ${shop}/network: the new revision 9c4f2d1` },
    status: {
      startTime: ago(start),
      endTime: ago(start - 20),
      message: "creating EC2 Subnet: the CIDR '10.0.1.0/24' conflicts with another subnet",
      errorClass: "programError",
      summary: "2 created, 1 failed",
      stdout: {
        text: "Updating (dev):\n +  aws:ec2:Vpc main created (4s)\n +  aws:ec2:Subnet private-a **creating failed**\nerror: 1 error",
        truncated: false,
      },
      conditions: [condition("Complete", "True", "Complete"), condition("Failed", "True", "UpdateFailed")],
    },
  });
  const resources = [
    { urn: root },
    { urn: vpc, parent: root, id: "vpc-0a1b2c3d" },
    { urn: subnet, parent: vpc, id: "subnet-1" },
    { urn: bucket, parent: root, id: "acme-invoices", dependencies: [vpc] },
  ];
  const common = { stackName: "network", workspaceName: "network", type: "up" } as const;
  await stage.record(`${shop}/network-2`, {
    ...common,
    result: "failed",
    message: "creating EC2 Subnet: the CIDR '10.0.1.0/24' conflicts with another subnet",
    errorClass: "programError",
    startTime: ago(start),
    endTime: ago(start - 20),
    revision: "9c4f2d1",
    trigger: "the new revision 9c4f2d1",
    changes: { create: 2, same: 1 },
    versions: { operator: "3.0.0", pulumi: "3.200.0" },
    inputs: { config: "sha256:b", program: "sha256:2" },
    content: await content({ events: failedEvents, resources }),
  });
  await stage.record(`${shop}/network-1`, {
    ...common,
    result: "succeeded",
    startTime: ago(90_000),
    endTime: ago(89_992),
    revision: "77aa01b",
    trigger: "the first update",
    changes: { create: 2 },
    versions: { operator: "3.0.0", pulumi: "3.199.0" },
    inputs: { config: "sha256:a", program: "sha256:2" },
    content: await content({ events: firstEvents, resources: resources.slice(0, 2) }),
  });
  await stage.record(`${shop}/database-plan`, {
    stackName: "database",
    workspaceName: "database",
    type: "preview",
    result: "succeeded",
    startTime: ago(900),
    endTime: ago(895),
    content: await content({ events: planEvents }),
  });
}
