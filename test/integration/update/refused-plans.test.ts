/** Plans that were approved and may no longer be applied, with the real agent and the real CLI. */
import { expect, test } from "bun:test";
import { isComplete, stackKind, type StackSpec } from "@pko/api";
import { builtin, timestamp } from "@pko/kube";
import { preparations, stacks } from "@pko/operator";
import { decodeContent } from "@pko/records";
import type { PrepareRequest } from "@pko/rpc";
import { waitFor } from "@pko/testkit";

import { decide } from "../approvals/decide.ts";
import type { Operator } from "../harness/operator.ts";
import { controllerOf } from "../harness/pods.ts";
import { AgentProcess } from "./agent-process.ts";
import { updates, UpdateScene, workspaces } from "./scene.ts";

interface Plan {
  readonly updateName: string;
  readonly updateUid: string;
  readonly digest: string;
}

/** With secrets in the configuration, in a resource and in an output. */
function programWith(text: string): PrepareRequest {
  const stash = (input: string) => ({ type: "pulumi:index:Stash", properties: { input } });
  const program = {
    name: "shop",
    runtime: "yaml",
    config: { password: { type: "string" } },
    resources: { shown: stash(text), hidden: stash("${password}") },
    outputs: { token: { "fn::secret": "canary-output" } },
  };
  const password = { key: "shop:password", value: { from: "value", value: "canary-config" }, secret: true } as const;
  return {
    source: { kind: "files", files: { "Pulumi.yaml": JSON.stringify(program) } },
    stacks: [{ name: "dev", create: true, config: [password], environments: [] }],
  };
}

/** A Stack that requires approvals, whose Workspace has a real agent. */
class Approved implements AsyncDisposable {
  readonly #agent = new AgentProcess();
  readonly #scene: UpdateScene;
  readonly #preparing: ReturnType<typeof preparations>;
  readonly #operator: Operator;
  #port = 0;

  private constructor(scene: UpdateScene) {
    this.#scene = scene;
    this.#preparing = preparations({ ca: scene.ca, wake: () => undefined });
    this.#operator = scene.operator({ preparations: this.#preparing });
  }

  static async open(): Promise<Approved> {
    const approved = new Approved(await UpdateScene.open());
    await approved.#start();
    return approved;
  }

  async #start(): Promise<void> {
    const scene = this.#scene;
    this.#port = await this.#agent.start(scene.ca, { namespace: scene.namespace, name: "web" });
    const { apiVersion, kind } = stackKind;
    const spec: StackSpec = { stack: "dev", programRef: { name: "program" }, approval: { required: "Always" } };
    const stack = await scene.client.create(stacks, { apiVersion, kind, metadata: scene.ref("web"), spec });
    await scene.workspace("web");
    const body = { metadata: { ownerReferences: [controllerOf(stacks, stack)] } };
    await scene.client.patch(workspaces, scene.ref("web"), { patch: { type: "merge", body } });
    await scene.setReady("web", { address: `127.0.0.1:${this.#port}` });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#preparing.stop();
    await this.#scene[Symbol.asyncDispose]();
    await this.#agent[Symbol.asyncDispose]();
  }

  /** As the Workspace controller does for a new source. */
  async prepare(text: string): Promise<void> {
    const { namespace } = this.#scene;
    const { metadata } = await this.#scene.client.get(builtin.pods, this.#scene.ref("web-workspace-0"));
    const workspace = { namespace, name: "web" };
    const pod = { workspace, uid: metadata.uid ?? "", restarts: 0, ip: "127.0.0.1", port: this.#port };
    const isPrepared = (): boolean => {
      const preparation = this.#preparing.ensure(pod, programWith(text));
      return preparation.state === "done" && preparation.result.ok;
    };
    await waitFor(isPrepared, { timeoutMs: 60_000, what: `the program ${text} to be prepared` });
  }

  async plan(updateName: string): Promise<Plan> {
    const updateUid = await this.#scene.update(updateName, { type: "preview", savePlan: true });
    const { status } = await this.#scene.until(updateName, { Complete: "True/Updated" });
    return { updateName, updateUid, digest: status?.plan?.digest ?? "" };
  }

  async decide(plan: Plan, decision: "Approve" | "Reject"): Promise<void> {
    await decide(this.#scene, plan, { name: `${plan.updateName}-${decision.toLowerCase()}`, decision });
  }

  /** A plan expires a day after the end of its Update. */
  async setEnd({ updateName }: Plan, end: Date): Promise<void> {
    const patch = { type: "merge", body: { status: { endTime: timestamp(end.getTime()) } } } as const;
    await this.#scene.client.patch(updates, this.#scene.ref(updateName), { patch, subresource: "status" });
  }

  /** Returns the message. */
  async apply(name: string, plan: Plan): Promise<string> {
    await this.#scene.update(name, { applyPlan: { ...plan, approvalName: `${plan.updateName}-approve` } });
    const find = async () => {
      const update = await this.#scene.find(name);
      return update && isComplete(update) && update;
    };
    const { status } = await waitFor(find, { timeoutMs: 60_000, what: `the end of ${name}` });
    const isFailed = status?.conditions?.some(({ type, status: state }) => type === "Failed" && state === "True");
    return `${isFailed ? "failed" : "succeeded"}: ${status?.message ?? ""}`;
  }

  /** What must not change: the state, byte by byte, and the operations of the CLI that can change it. */
  footprint(): readonly string[] {
    const changing = this.#agent.cliCalls().filter((call) => / (up|destroy|refresh|import) /.test(call));
    return [this.#agent.stateOf("shop", "dev"), ...changing];
  }

  /** The sinks that contain a secret. */
  async leaks(): Promise<string[]> {
    const { client, namespace } = this.#scene;
    const records = await this.#scene.records();
    const sinks = {
      agent: this.#agent.log,
      events: this.#operator.events,
      updates: await client.list(updates, { namespace }),
      stack: await client.get(stacks, this.#scene.ref("web")),
      records,
      contents: await Promise.all(records.map(({ record }) => decodeContent(record.content ?? ""))),
    };
    return Object.entries(sinks).flatMap(([sink, content]) =>
      JSON.stringify(content).includes("canary") ? [sink] : [],
    );
  }
}

test("a superseded, a rejected, an expired and a used plan change nothing, and leave no secret in any sink", async () => {
  await using web = await Approved.open();
  const refused = async (name: string, plan: Plan): Promise<string> => {
    const before = web.footprint();
    const message = await web.apply(name, plan);
    expect(web.footprint()).toEqual(before);
    expect({ name, leaks: await web.leaks() }).toEqual({ name, leaks: [] });
    return message;
  };

  await web.prepare("one");
  const superseded = await web.plan("superseded");
  await web.decide(superseded, "Approve");
  await web.prepare("two");
  expect(await refused("too-late", superseded)).toMatch(
    /^failed: the approval is for plan .*\(changed: program\); nothing was changed/,
  );

  const rejected = await web.plan("rejected");
  await web.decide(rejected, "Approve");
  await web.decide(rejected, "Reject");
  expect(await refused("not-today", rejected)).toContain("was rejected by");

  const plan = await web.plan("plan");
  await web.decide(plan, "Approve");
  await web.setEnd(plan, new Date("2020-01-01"));
  expect(await refused("expired", plan)).toContain("failed: The plan of Update plan expired at 2020-01-02T00:00:00");

  await web.setEnd(plan, new Date());
  const before = web.footprint();
  expect(await web.apply("applied", plan)).toStartWith("succeeded");
  expect(web.footprint()).not.toEqual(before);
  expect(await refused("again", plan)).toContain("which Update applied has taken, so nothing was changed");
}, 240_000);
