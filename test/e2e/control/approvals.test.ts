/** Approvals on a real cluster: plans of the real CLI, users with the roles of an installation, the real admission policies. */
import { gunzipSync } from "node:zlib";
import { beforeAll, expect, test } from "bun:test";

import {
  isComplete,
  reconcileRequestAnnotation,
  type ApprovalRequest,
  type ApprovalSpec,
  type Stack,
  type Update,
  type UpdateRecord,
} from "@pko/api";
import { updates } from "@pko/operator/kinds";
import { waitFor } from "@pko/testkit";

import {
  agentLog,
  anyPlan,
  applyTo,
  at,
  createUser,
  execInPod,
  failedReason,
  fromSecret,
  getStack,
  isAt,
  isReady,
  kubectl,
  listUpdates,
  newApproval,
  newProgram,
  newSecret,
  newStack,
  onFileBackend,
  readVolume,
  runAs,
  stackUntil,
  stalledBy,
  untilApprovalsAreChecked,
  untilEvents,
  useScene,
} from "../harness.ts";

const slow = 600_000;
const scene = useScene("approvals");

let asAnna: typeof kubectl;
let asBob: typeof kubectl;

beforeAll(async () => {
  asAnna = await createUser(scene, "anna", "approver");
  asBob = await createUser(scene, "bob", "edit");
  await untilApprovalsAreChecked(scene);
}, slow);

const program = (name: string, ...resources: readonly string[]): object =>
  newProgram(name, {
    resources: Object.fromEntries(
      resources.map((each) => [each, { type: "pulumi:index:Stash", properties: { input: each } }]),
    ),
    outputs: { resources: resources.join(" ") },
  });

const stack = (name: string, spec: object = {}): object =>
  newStack(name, { programRef: { name }, approval: { required: "Always" }, ...spec });

/** Waits until a plan other than `before` must be approved. */
async function awaiting(name: string, before?: ApprovalRequest): Promise<ApprovalRequest & { message: string }> {
  const { status } = await stackUntil(
    scene,
    name,
    (each) => reconciling(each)?.reason === "AwaitingApproval" && each.status?.approval?.digest !== before?.digest,
  );
  if (!status?.approval) throw new Error("there is no request");
  expect(status.approval.state).toBe("Pending");
  return { ...status.approval, message: status.conditions?.find(({ type }) => type === "Reconciling")?.message ?? "" };
}

const reconciling = ({ status }: Stack) => status?.conditions?.find(({ type }) => type === "Reconciling");

async function decide(request: ApprovalRequest, spec: Partial<ApprovalSpec> = {}): Promise<void> {
  const input = JSON.stringify(newApproval(request, { decidedBy: "anna", ...spec }));
  await asAnna(["create", ...at(scene), "-f", "-"], { input });
}

/** Why the API server denies an Approval; empty if it accepts it. Nothing is stored. */
async function denial(user: typeof kubectl, spec: Pick<ApprovalSpec, "decidedBy">): Promise<string> {
  const input = JSON.stringify(newApproval(anyPlan, spec));
  return await refusal(user(["create", ...at(scene), "--dry-run=server", "-f", "-"], { input }));
}

async function refusal(request: Promise<unknown>): Promise<string> {
  return await request.then(
    () => "",
    (error: unknown) => String(error),
  );
}

const stateFile = (name: string): string => `/state/.pulumi/stacks/${name}/${name}.json`;
const readState = (name: string): Promise<string> => execInPod(scene, name, `cat ${stateFile(name)}`);

/** What ran, in order. */
const operations = async (name: string): Promise<string[]> =>
  (await listUpdates(scene, name)).map(({ spec }) => (spec?.savePlan ? `plan ${spec.type}` : `${spec?.type}`));

test.concurrent(
  "nothing is changed before an approval, and the status shows who approved what, when and why",
  async () => {
    await applyTo(scene, program("website", "page"), stack("website"));
    const first = await awaiting("website");
    expect(first.message).toContain("create   pulumi:index:Stash page");
    expect(first.message).toContain(`kubectl pulumi approve website --namespace ${scene.namespace}`);
    expect(await readState("website")).not.toContain("pulumi:index:Stash");
    const undeployed = await getStack(scene, "website");
    expect(undeployed.status?.lastUpdate).toBeUndefined();

    const [, command = ""] = first.message.split("Or, without the plugin:\n");
    expect(await runAs("anna", command)).toContain("created");
    const deployed = await stackUntil(scene, "website", isReady);
    expect(await readState("website")).toContain("pulumi:index:Stash");
    expect(deployed.status?.approval).toMatchObject({
      state: "Approved",
      digest: first.digest,
      decidedBy: "anna",
      appliedBy: deployed.status?.lastUpdate?.name ?? "",
    });

    await applyTo(scene, program("website", "page", "style"));
    const second = await awaiting("website", first);
    const before = await readState("website");
    await applyTo(scene, program("website", "page", "script"));
    const third = await awaiting("website", second);
    expect(third.message).toContain("script");
    // Approves a plan that has been superseded.
    await decide(second);
    expect(await readState("website")).toBe(before);
    await decide(third, { reason: "reviewed" });
    const changed = await stackUntil(scene, "website", isAt("3"));
    expect(changed.status?.outputs).toEqual({ resources: "page script" });
    expect(changed.status?.approval).toMatchObject({ digest: third.digest, decidedBy: "anna", reason: "reviewed" });
    expect(Date.parse(changed.status?.approval?.decidedAt ?? "")).toBeLessThan(Date.parse(third.expiresAt));
    expect(await operations("website")).toEqual(["plan preview", "up", "plan preview", "plan preview", "up"]);
    await untilEvents(scene, "website", "StackAwaitingApproval", "StackApproved", "StackApprovalSuperseded");
  },
  slow,
);

test.concurrent(
  "users who may only edit neither approve nor change anything, and a rejected plan is not applied",
  async () => {
    await applyTo(scene, program("guarded", "vault"), stack("guarded"));
    const request = await awaiting("guarded");
    const before = await readState("guarded");

    expect(await denial(asBob, { decidedBy: "bob" })).toContain("cannot create resource");
    expect(await denial(asAnna, { decidedBy: "bob" })).toContain("spec.decidedBy");
    const weaken = JSON.stringify({ spec: { approval: { required: "Never" } } });
    expect(
      await refusal(asBob(["patch", "stack", "guarded", ...at(scene), "--type=merge", "--patch", weaken])),
    ).toContain("only a user who may create Approvals");

    const { updateName, updateUid, digest } = request;
    const own = {
      "own-up": { type: "up" },
      "own-destroy": { type: "destroy" },
      "own-plan": { type: "up", applyPlan: { updateName, updateUid, digest } },
    };
    for (const [name, spec] of Object.entries(own)) {
      const input = JSON.stringify({
        apiVersion: updates.apiVersion,
        kind: updates.kind,
        metadata: { name },
        spec: { workspaceName: "guarded", stackName: "guarded", ...spec },
      });
      await asBob(["create", ...at(scene), "-f", "-"], { input });
    }
    for (const name of Object.keys(own)) {
      const ended = await untilEnded(name);
      expect({ name, reason: failedReason(ended) }).toEqual({ name, reason: "Failed" });
      expect(ended.status?.message).toContain("so nothing was changed");
      expect(ended.status?.startTime).toBeUndefined();
    }

    await decide(request, { decision: "Reject", reason: "not today" });
    const rejected = await stalledBy(scene, "guarded", { reason: "ApprovalRejected", message: "not today" });
    expect(rejected.status?.approval).toMatchObject({ state: "Rejected", decidedBy: "anna" });
    expect(await readState("guarded")).toBe(before);

    await kubectl(["annotate", "stack", "guarded", ...at(scene), `${reconcileRequestAnnotation}=again`]);
    await awaiting("guarded", request);
    expect(await operations("guarded")).toEqual(["plan preview", "plan preview"]);
  },
  slow,
);

async function untilEnded(name: string): Promise<Update> {
  const { client, namespace } = scene;
  const findEnded = async (): Promise<Update | false> => {
    const update = await client.get(updates, { name, namespace });
    return isComplete(update) && update;
  };
  return await waitFor(findEnded, { timeoutMs: 180_000, what: `the end of Update ${name}` });
}

test.concurrent(
  "with OnDestructiveChanges, only deletions wait, and so does the destroy of a deleted Stack",
  async () => {
    const approval = { required: "OnDestructiveChanges" };
    await applyTo(scene, program("store", "a", "b"), stack("store", { approval, destroyOnFinalize: true }));
    const created = await stackUntil(scene, "store", isReady);
    expect(created.status?.approval).toMatchObject({
      state: "NotRequired",
      appliedBy: created.status?.lastUpdate?.name ?? "",
    });
    await applyTo(scene, program("store", "a", "b", "c"));
    await stackUntil(scene, "store", isAt("2"));
    expect(await operations("store")).toEqual(["plan preview", "up", "plan preview", "up"]);

    await applyTo(scene, program("store", "a", "c", "d"));
    const deletion = await awaiting("store");
    // Deletions are first.
    expect(deletion.summary).toMatch(/^1 to delete, 1 to create\ndelete   pulumi:index:Stash b\n/);
    const before = await readState("store");
    expect(before).toContain("Stash::b");
    await decide(deletion);
    await stackUntil(scene, "store", isAt("3"));
    expect(await readState("store")).not.toContain("Stash::b");

    await kubectl(["delete", "stack", "store", ...at(scene), "--wait=false"]);
    const destroy = await awaiting("store", deletion);
    expect(destroy.summary).toContain("delete   pulumi:index:Stash a");
    expect(await readState("store")).toContain("Stash::a");
    await decide(destroy);
    await kubectl(["wait", "--for=delete", "stack/store", ...at(scene), "--timeout=240s"]);
    expect(await readVolume(scene, `cat ${stateFile("store")}`)).not.toContain('"urn"');
  },
  slow,
);

const canary = "canary-4711";

/** With the events of the runs, which a record has compressed. */
async function recordTexts(): Promise<string> {
  const text = await kubectl(["get", "updaterecords", ...at(scene), "--output=json"]);
  const { items } = JSON.parse(text) as { items: UpdateRecord[] };
  const contents = items.flatMap(({ record }) => record.content ?? []);
  return [text, ...contents.map((content) => gunzipSync(Buffer.from(content, "base64")).toString())].join("\n");
}

/** In what users without access to Secrets can read. */
async function expectNoCanary(name: string): Promise<void> {
  const sinks = {
    operator: await scene.operator.log(),
    agent: await agentLog(scene, name),
    events: await kubectl(["get", "events", ...at(scene), "--output=json"]),
    objects: await kubectl(["get", "stacks,updates,workspaces,approvals", ...at(scene), "--output=json"]),
    records: await recordTexts(),
  };
  for (const [sink, text] of Object.entries(sinks)) {
    expect({ sink, isLeaked: text.includes(canary) }).toEqual({ sink, isLeaked: false });
  }
}

test.concurrent(
  "an approval does not cover values that changed after the plan was made",
  async () => {
    await applyTo(
      scene,
      newSecret("configuration", { size: `${canary}-small` }),
      newSecret("credentials", { token: `${canary}-first` }),
      newProgram("sized", {
        configuration: { size: { type: "string" } },
        resources: { disk: { type: "pulumi:index:Stash", properties: { input: "${size}" } } },
      }),
      stack("sized", {
        secretsRef: { size: fromSecret("configuration", "size") },
        envRefs: { ...onFileBackend.envRefs, TOKEN: fromSecret("credentials", "token") },
      }),
    );
    // A changed value of the environment makes no update due, so the approved plan is refused when it is applied.
    const first = await awaiting("sized");
    const before = await readState("sized");
    await applyTo(scene, newSecret("credentials", { token: `${canary}-second` }));
    await decide(first);
    const failed = await stackUntil(scene, "sized", ({ status }) => status?.lastUpdate?.state === "failed");
    expect(failed.status?.lastUpdate).toMatchObject({ failure: "planChanged" });
    expect(failed.status?.lastUpdate?.message).toContain(
      "(changed: configuration or environment); nothing was changed",
    );
    expect(await readState("sized")).toBe(before);

    await expectNoCanary("sized");

    // A changed value of the configuration makes an update due, so another plan is made.
    const second = await awaiting("sized", first);
    await applyTo(scene, newSecret("configuration", { size: `${canary}-large` }));
    await decide(second);
    const third = await awaiting("sized", second);
    expect(await readState("sized")).toBe(before);
    await expectNoCanary("sized");
    expect(await operations("sized")).toEqual(["plan preview", "up", "plan preview", "plan preview"]);

    await decide(third);
    await stackUntil(scene, "sized", isReady);
    expect(await readState("sized")).toContain("pulumi:index:Stash");
  },
  slow,
);
