/** For tests: the events and the record of a run, in the format of packages/records. */
import { labelsOfStack, updateRecordKind, type UpdateRecord, type UpdateRecordContent } from "@pko/api";
import { timestamp } from "@pko/kube";
import {
  emptyContent,
  encodeContent,
  type NumberedEvent,
  type RecordContent,
  type ResourceEvent,
  type RunEvent,
} from "@pko/records";

import { ago, now } from "./objects.ts";

export const urn = (type: string, name: string): string => `urn:pulumi:dev::orders::${type}::${name}`;

export const urns = {
  stack: urn("pulumi:pulumi:Stack", "orders-dev"),
  vpc: urn("aws:ec2/vpc:Vpc", "main"),
  subnet: urn("aws:ec2/subnet:Subnet", "a"),
  bucket: urn("aws:s3/bucket:Bucket", "logs"),
  db: urn("aws:rds/instance:Instance", "main"),
  app: urn("kubernetes:apps/v1:Deployment", "app"),
} as const;

type Step = Partial<ResourceEvent>;

const typeIn = (of: string): string => of.split("::")[2] ?? "";

export const started = (of: string, op: string, more: Step = {}): ResourceEvent => ({
  kind: "resource",
  phase: "started",
  op,
  urn: of,
  resourceType: typeIn(of),
  ...(of === urns.stack ? {} : { parent: urns.stack }),
  ...more,
});

export const finished = (of: string, op: string, more: Step = {}): ResourceEvent => ({
  ...started(of, op, more),
  phase: "finished",
  durationMs: 2100,
  ...more,
});

export const failedStep = (of: string, op: string, more: Step = {}): ResourceEvent => ({
  ...started(of, op),
  phase: "failed",
  durationMs: 1400,
  ...more,
});

export const subnetError = "creating EC2 Subnet: The CIDR '10.0.1.0/24' conflicts with another subnet";

/** One event per second, from three minutes ago. */
export const numbered = (events: readonly RunEvent[], first = 1): NumberedEvent[] =>
  events.map((event, at) => ({ seq: first + at, time: timestamp(now - 180_000 + (first + at) * 1000), event }));

/** An up that creates, updates, replaces and deletes, and of which one resource fails. */
export const orderEvents: readonly NumberedEvent[] = numbered([
  { kind: "step", name: "up" },
  started(urns.stack, "update"),
  started(urns.vpc, "create"),
  finished(urns.vpc, "create", { id: "vpc-0a1b" }),
  started(urns.subnet, "create"),
  started(urns.db, "create-replacement"),
  failedStep(urns.subnet, "create", { id: "subnet-1" }),
  { kind: "diagnostic", severity: "error", message: subnetError, urn: urns.subnet },
  finished(urns.db, "create-replacement", { durationMs: 61_000 }),
  finished(urns.db, "replace", {
    durationMs: 300,
    replaceKeys: ["engineVersion"],
    changes: [
      { path: "engineVersion", kind: "update-replace", old: '"14"', new: '"16"' },
      { path: "password", kind: "update", old: '"[secret]"', new: '"[secret]"' },
    ],
  }),
  started(urns.app, "update"),
  finished(urns.app, "update", {
    id: "shop/app",
    changes: [
      { path: "spec.replicas", kind: "update", old: "1", new: "3" },
      { path: "metadata.labels.tier", kind: "add", new: '"web"' },
    ],
    omittedChanges: 2,
  }),
  finished(urns.bucket, "same", { id: "logs-4711", durationMs: 100 }),
  { kind: "policy", level: "advisory", policy: "aws-tags", message: "add a cost center", urn: urns.vpc },
  { kind: "summary", changes: { create: 1, update: 1, replace: 1, same: 1 }, durationSeconds: 119, result: "failed" },
]);

export const orderContent: RecordContent = {
  ...emptyContent,
  events: [...orderEvents],
  resources: [
    { urn: urns.stack },
    { urn: urns.vpc, parent: urns.stack, id: "vpc-0a1b" },
    { urn: urns.subnet, parent: urns.vpc, id: "subnet-1", dependencies: [urns.vpc] },
    { urn: urns.bucket, parent: urns.stack, id: "logs-4711" },
    { urn: urns.app, parent: urns.stack, id: "shop/app" },
  ],
};

const planned = (of: string, op: string, more: Step = {}): ResourceEvent =>
  finished(of, op, { durationMs: 100, ...more });

/** A preview of the same changes. */
const previewContent: RecordContent = {
  ...emptyContent,
  events: numbered([
    { kind: "step", name: "preview" },
    planned(urns.stack, "update"),
    planned(urns.vpc, "create"),
    planned(urns.subnet, "create"),
    planned(urns.db, "replace", {
      durationMs: 300,
      replaceKeys: ["engineVersion"],
      changes: [{ path: "engineVersion", kind: "update-replace", old: '"14"', new: '"16"' }],
    }),
    planned(urns.app, "update", { changes: [{ path: "spec.replicas", kind: "update", old: "1", new: "3" }] }),
    planned(urns.bucket, "same"),
    {
      kind: "summary",
      changes: { create: 2, update: 2, replace: 1, same: 1 },
      durationSeconds: 4,
      result: "succeeded",
    },
  ]),
};

/** Of the child Stack of `kubectl pulumi preview orders`. */
export const previewRecord = async (): Promise<UpdateRecord> =>
  await aRecord({
    name: "orders-preview-5c21a-77d0e3b14f92",
    stack: "orders-preview-5c21a",
    content: previewContent,
    record: { type: "preview", result: "succeeded", changes: { create: 2, update: 2, replace: 1, same: 1 } },
  });

interface Change {
  readonly name?: string;
  readonly stack?: string;
  readonly content?: RecordContent;
  readonly record?: Partial<UpdateRecordContent>;
}

export async function aRecord({ name = "orders-3f9c1e77ab20", stack = "orders", content, record }: Change = {}) {
  const { apiVersion, kind } = updateRecordKind;
  const result: UpdateRecord = {
    apiVersion,
    kind,
    metadata: { name, namespace: "shop", labels: labelsOfStack(stack) },
    record: {
      updateName: name,
      updateUid: "5d7d3e2a-9d0c-4d3e-8a44-5a0a6f3f9a10",
      stackName: stack,
      pulumiStack: "acme/orders/dev",
      type: "up",
      result: "failed",
      ...(record?.result === "succeeded" ? {} : { message: `error: ${subnetError}`, errorClass: "programError" }),
      startTime: ago(180),
      endTime: ago(60),
      revision: "9c4f2d1",
      trigger: "the new revision 9c4f2d1",
      changes: { create: 1, update: 1, replace: 1, same: 1 },
      approval: { approvalName: "orders-x7k2p", decidedBy: "alice", time: ago(200), reason: "reviewed" },
      versions: { operator: "3.0.0", agent: "3.0.0", pulumi: "3.259.0" },
      inputs: { configuration: "sha256:aa11", program: "sha256:bb22", "secret/orders.password": "4b1c20d97e35" },
      content: await encodeContent(content ?? orderContent),
      ...record,
    },
  };
  return result;
}
