/** What people see, at 80 and 140 columns: the files in testdata. */
import type { ApiObject } from "@pko/kube";
import { describe, expect, test } from "bun:test";
import type { Event } from "kubernetes-types/core/v1";

import type { Block } from "../output/blocks.ts";
import { render } from "../output/render.ts";
import { width } from "../output/wrap.ts";
import { byUrgency, summarizeStack, summarizeUpdate } from "../stacks/summary.ts";
import { expectGolden } from "../testing/golden.ts";
import { ago, ahead, anUpdate, aStack, condition, notReady, now, ready } from "../testing/objects.ts";
import type { UpdateRecord } from "@pko/api";
import { documentOf } from "../documents.ts";
import { compareRuns, comparisonBlocks } from "../runs/compare.ts";
import { diffBlocks, itemOf } from "../runs/diff-report.ts";
import { mergeHistory } from "../runs/record-summary.ts";
import { describeRun, showReport } from "../runs/show-report.ts";
import { decodeRecords } from "../runs/records.ts";
import { searchRecords, traceBlocks } from "../runs/trace-report.ts";
import { describeTree, treeBlocks } from "../runs/tree-report.ts";
import { aRecord, orderContent, orderEvents, previewRecord, urns } from "../testing/runs.ts";
import { planBlocks } from "./approve.ts";
import { checkReport } from "./check.ts";
import { eventBlocks, summarizeEvent } from "./events.ts";
import { detailReport, fleetBlocks } from "./get.ts";
import { historyBlocks } from "./history.ts";
import { outputsBlocks } from "./outputs.ts";
import { holderBlocks } from "./unlock.ts";
import { explanationBlocks } from "./why.ts";

const failure =
  "The up orders-3f9c1e77ab20 failed for the 3rd time in a row: error: creating EC2 Subnet: operation error EC2: CreateSubnet, https response error StatusCode: 400, InvalidSubnet.Conflict: The CIDR '10.0.1.0/24' conflicts with another subnet\nIt will be retried at 2030-01-01T12:05:00Z.";

const request = {
  state: "Pending" as const,
  updateName: "db-77aa01bc23de",
  updateUid: "5d7d3e2a-9d0c-4d3e-8a44-5a0a6f3f9a10",
  digest: "sha256:5f2c9e",
  trigger: "{}",
  summary: "1 to replace, 1 to create\nreplace  aws:rds/instance:Instance main\ncreate   aws:s3/bucket:Bucket logs",
  unknownInputs: 3,
  expiresAt: ahead(7200),
};

const fleet = [
  aStack("website", {
    conditions: ready("The last update succeeded: 12 unchanged."),
    lastUpdate: { name: "website-1", type: "up", state: "succeeded", lastResyncTime: ago(5400) },
  }),
  aStack("orders", {
    conditions: notReady("Stalled", "UpdateFailed", failure),
    lastUpdate: {
      name: "orders-3f9c1e77ab20",
      type: "up",
      state: "failed",
      failures: 3,
      failure: "programError",
      lastResyncTime: ago(60),
    },
    next: { what: "a retry", time: ahead(300) },
  }),
  aStack("db", {
    conditions: notReady(
      "Reconciling",
      "AwaitingApproval",
      "The changes must be approved before 2030-01-01T14:00:00Z: 1 to replace, 1 to create.",
    ),
    approval: request,
  }),
  aStack("cache", {
    conditions: notReady(
      "Reconciling",
      "StackProcessing",
      "The up cache-0 has been running since 2030-01-01T11:59:00Z.",
    ),
  }),
  aStack("new"),
];

const orders = anUpdate("orders-3f9c1e77ab20", {
  spec: { message: "Stack shop/orders: the new revision 9c4f2d1" },
  status: {
    startTime: ago(180),
    endTime: ago(60),
    message: "error: creating EC2 Subnet: The CIDR '10.0.1.0/24' conflicts with another subnet",
    errorClass: "programError",
    summary: "3 created, 1 failed",
    permalink: "https://app.pulumi.com/acme/orders/dev/updates/42",
    stdout: {
      text: "Updating (dev):\n +  aws:ec2:Vpc main created (2.1s)\n\nDiagnostics:\n  aws:ec2:Subnet (a):\n    error: creating EC2 Subnet: The CIDR '10.0.1.0/24' conflicts with another subnet\n",
      truncated: false,
    },
    conditions: [
      condition("Complete", "True", ["Complete", ""]),
      condition("Failed", "True", ["UpdateFailed", "error"]),
    ],
  },
});

const detailed = aStack(
  "db",
  {
    conditions: [
      ...notReady("Reconciling", "AwaitingApproval", "The changes must be approved."),
      condition("Drifted", "True", ["DriftDetected", "1 resource differs"]),
    ],
    approval: request,
    drift: {
      checkedAt: ago(600),
      summary: "1 resource differs from the state",
      resources: [
        {
          urn: "urn:pulumi:dev::db::aws:rds/instance:Instance::main",
          operation: "update",
          properties: ["tags", "backupRetentionPeriod"],
        },
      ],
    },
    waiting: { for: "an Approval of the plan of Update db-77aa01bc23de", since: ago(900) },
    lastUpdate: {
      name: "db-1",
      type: "up",
      state: "succeeded",
      lastResyncTime: ago(86_400),
      summary: "2 changed, 5 unchanged",
      lastAttemptedCommit: "9c4f2d1",
    },
    outputs: { endpoint: "db.example.com:5432", password: "[secret]", ports: [5432, 5433] },
  },
  { projectRepo: "https://github.com/acme/db", branch: "main", repoDir: "infra", prerequisites: [{ name: "network" }] },
);

const event = (reason: string, message: string, more: Partial<Event>): ApiObject<Event> => ({
  apiVersion: "v1",
  kind: "Event",
  metadata: { name: reason },
  involvedObject: { kind: "Stack", name: "orders" },
  lastTimestamp: ago(60),
  type: "Warning",
  reason,
  message,
  ...more,
});

const orderRecord = await aRecord();
const older = {
  name: "orders-aa11bb22cc33",
  content: { ...orderContent, events: orderEvents.slice(0, 4), resources: orderContent.resources.slice(0, 3) },
  record: {
    result: "succeeded",
    revision: "77aa01b",
    trigger: "a resync",
    startTime: ago(7200),
    endTime: ago(7100),
    inputs: {
      configuration: "sha256:cc33",
      program: "sha256:bb22",
      "secret/orders.password": "90aa1177cd02",
      "configMap/orders.region": "5be3f1a0c4d7",
    },
  },
} as const;
const detailOf = async (record: UpdateRecord) => await describeRun({ record, hidden: [] });
const compared = documentOf("Comparison", {
  namespace: "shop",
  from: older.name,
  to: orderRecord.record.updateName,
  ...compareRuns(
    { detail: await detailOf(await aRecord(older)), resources: [urns.stack, urns.vpc], outputs: ["url", "old"] },
    { detail: await detailOf(orderRecord), resources: [urns.stack, urns.app], outputs: ["url"] },
  ),
  hidden: [],
});
const traced = documentOf("Trace", {
  query: "deployment/app",
  owners: [],
  matches: searchRecords(await decodeRecords([orderRecord, await aRecord(older)]), [
    { kind: "object", type: "Deployment", id: "shop/app" },
  ]),
});

const screens: Readonly<Record<string, readonly Block[]>> = {
  fleet: fleetBlocks(fleet.map(summarizeStack).toSorted(byUrgency), { now, allNamespaces: false, where: "" }),
  "fleet-all-namespaces": fleetBlocks(fleet.map(summarizeStack).toSorted(byUrgency), {
    now,
    allNamespaces: true,
    where: "",
  }),
  "get-stack": detailReport(detailed, now).blocks,
  why: explanationBlocks({
    path: ["website", "orders", "network"],
    cause: {
      code: "inputMissing",
      summary: "A Secret or ConfigMap that Stack network needs is missing or incomplete.",
      message:
        "there is no Secret aws, which the variable AWS_SECRET_ACCESS_KEY needs; this is checked again automatically",
      next: [
        "Create the object, or add the key, that the message names, in the namespace of the Stack.",
        "Otherwise it is retried at 2030-01-01T12:05:00Z (in 5m).",
      ],
    },
    hidden: [
      { what: "the workspace pod", permission: { verb: "get", resource: "pods", apiGroup: "", namespace: "shop" } },
    ],
  }),
  history: historyBlocks([orders, anUpdate("orders-aa11bb22cc33", { status: {} })].map(summarizeUpdate), now),
  show: (await showReport({ update: orders, hidden: [] }, now)).blocks,
  "show-record": (await showReport({ record: orderRecord, hidden: [] }, now)).blocks,
  "history-records": historyBlocks(mergeHistory([summarizeUpdate(orders)], [orderRecord, await aRecord(older)]), now),
  tree: treeBlocks(
    describeTree({ namespace: "shop", name: "orders" }, { record: orderRecord, content: orderContent }),
    now,
  ),
  "diff-preview": diffBlocks([{ ...(await itemOf("orders", await previewRecord())), what: "preview" }], now),
  "diff-plan": diffBlocks(
    [
      {
        namespace: "shop",
        name: "db",
        update: request.updateName,
        what: "plan",
        summary: request.summary,
        resources: [],
      },
    ],
    now,
  ),
  compare: comparisonBlocks(compared),
  trace: traceBlocks(traced, now),
  events: eventBlocks(
    [
      summarizeEvent(event("StackUpdateFailure", failure, { count: 3 })),
      summarizeEvent(
        event("StackUpdateDetected", "an update is about to run for the new revision 9c4f2d1", { type: "Normal" }),
      ),
    ],
    now,
  ),
  plan: planBlocks("db", request, now),
  outputs: outputsBlocks({ endpoint: "db.example.com:5432", password: "[secret]" }, ["password"]),
  lock: holderBlocks(
    aStack("orders", {
      lastUpdate: {
        failure: "conflict",
        message:
          "the stack is currently locked by 1 lock(s)\n  root@orders-workspace-0 (pid 42) at 2030-01-01T11:00:00Z",
      },
    }),
  ),
  check: checkReport(
    [
      { name: "Kubernetes", result: "ok", message: "v1.35.0" },
      {
        name: "Operator",
        result: "failed",
        message: "The operator is not running: its Lease has no holder.",
        fix: "Check its pods: kubectl get pods -n pulumi-kubernetes-operator",
      },
      {
        name: "Policy for Approvals",
        result: "unknown",
        message:
          "cannot see it: you do not have permission to list validatingadmissionpolicies.admissionregistration.k8s.io in the whole cluster",
      },
    ],
    [
      {
        severity: "blocks",
        namespace: "shop",
        name: "orders",
        field: "spec.projectRepo",
        message: "plain http is rejected by default",
        fix: "use https, or set the chart value git.allowHttp",
      },
      {
        severity: "differs",
        namespace: "shop",
        name: "website",
        field: "spec.secretsRef",
        message: "a changed value in a Secret or ConfigMap triggers an update, usually within a minute",
        fix: "nothing, unless you rely on the opposite",
      },
    ],
  ).blocks,
};

/** Text that must not be split, such as a table of fixed columns, may be wider than the terminal. */
const wide = new Set([
  "history",
  "history-records",
  "show",
  "show-record",
  "check",
  "get-stack",
  "compare",
  "trace",
  "tree",
]);

describe.each([80, 140])("at %d columns", (columns) => {
  for (const [name, blocks] of Object.entries(screens)) {
    test(name, () => {
      const text = render(blocks, { width: columns, color: false });
      expectGolden(`${name}-${columns}.txt`, text);
      if (!wide.has(name)) expect(Math.max(...text.split("\n").map(width))).toBeLessThanOrEqual(columns);
    });
  }
});

test("color does not change the text", () => {
  for (const blocks of Object.values(screens)) {
    const [plain, colored] = [false, true].map((color) => render(blocks, { width: 100, color }));
    expect(colored).not.toBe(plain);
    expect(Bun.stripANSI(colored ?? "")).toBe(plain ?? "");
  }
});

test("messages cannot control the terminal", () => {
  const hostile = aStack("web", { conditions: ready("fine\u001B]0;title\u0007\u001B[2J\u009B31m") });
  const text = render(fleetBlocks([summarizeStack(hostile)], { now, allNamespaces: false, where: "" }), {
    width: 100,
    color: false,
  });
  // oxlint-disable-next-line no-control-regex -- it looks for control characters
  expect(text).not.toMatch(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/);
});
