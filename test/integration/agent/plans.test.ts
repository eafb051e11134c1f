/** Plans with the real CLI: what an approved plan binds, and what happens if something changed before it is applied. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { goProgramEnv } from "@pko/cluster";
import type { Operation, RunResult, SealedPlan, Source, StackSettings } from "@pko/rpc";
import type { WatchUpdate } from "@pko/rpc/watch";

import { Gate } from "./gate.ts";
import { program, pulumi, stash, TestWorkspace, toolFolders } from "./harness.ts";

setDefaultTimeout(300_000);

const urn = (name: string): string => `urn:pulumi:dev::demo::pulumi:index:Stash::${name}`;
const secretItem = (value: string) => ({ key: "token", value: { from: "value" as const, value }, secret: true });

/** Several Workspaces with the same backend: each is what another pod would be. */
class Plans {
  readonly first = new TestWorkspace();
  #runs = 0;
  #last = this.first;

  /** A pod that shares the backend. */
  another(env: Readonly<Record<string, string>> = {}): TestWorkspace {
    return new TestWorkspace({ env: { PULUMI_BACKEND_URL: `file://${this.first.backend}`, ...env } });
  }

  async run(web: TestWorkspace, operation: Operation): Promise<RunResult> {
    this.#runs += 1;
    this.#last = web;
    return await web.run(`run-${this.#runs}`, operation);
  }

  /** Everything that leaves the pod of the last run, and the files of the run. */
  async sinks(): Promise<Record<string, string>> {
    const [web, folder] = [this.#last, this.lastRun(this.#last)];
    const files = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")] as const);
    return {
      log: web.log,
      events: JSON.stringify(await web.updates(`run-${this.#runs}`)),
      ...Object.fromEntries(files),
    };
  }

  /** Previews and returns the plan with its result. */
  async preview(web: TestWorkspace, options: object = {}): Promise<{ result: RunResult; plan: SealedPlan }> {
    const result = await this.run(web, { kind: "preview", savePlan: true, ...options });
    expect(result).toMatchObject({ outcome: "succeeded" });
    return { result, plan: await web.plan(`run-${this.#runs}`) };
  }

  async apply(web: TestWorkspace, applyPlan: SealedPlan, options: object = {}): Promise<RunResult> {
    return await this.run(web, { kind: "up", applyPlan, ...options });
  }

  lastRun(web: TestWorkspace): string {
    return join(web.share, "runs", `run-${this.#runs}`);
  }

  /** The state, byte by byte. */
  state(): string {
    return readFileSync(join(this.first.backend, ".pulumi/stacks/demo/dev.json"), "utf8");
  }

  exportState(): State {
    return JSON.parse(this.#pulumi(["stack", "export", "--stack=organization/demo/dev"])) as State;
  }

  /** Changes the state as another user of the backend would. */
  importState(text: string): void {
    this.#pulumi(["stack", "import", "--stack=organization/demo/dev"], text);
  }

  #pulumi(args: readonly string[], input?: string): string {
    return execFileSync(pulumi, [...args, "--non-interactive"], {
      cwd: this.first.root,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "ignore"],
      ...(input !== undefined && { input }),
      env: {
        ...goProgramEnv,
        PATH: `${toolFolders.join(":")}:${process.env["PATH"] ?? ""}`,
        HOME: join(this.first.root, "home"),
        PULUMI_HOME: join(this.first.root, "home", ".pulumi"),
        PULUMI_BACKEND_URL: `file://${this.first.backend}`,
        PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
        PULUMI_SKIP_UPDATE_CHECK: "true",
      },
    });
  }
}

interface State {
  readonly deployment: {
    readonly secrets_providers: object;
    readonly resources: readonly { readonly urn: string; readonly inputs: Record<string, unknown> }[];
  };
}

/** The checkpoint of a stack in the backend. */
interface Checkpoint {
  readonly checkpoint: { readonly latest: { secrets_providers: object } };
}

function readCheckpoint(file: string): Checkpoint {
  return JSON.parse(readFileSync(file, "utf8")) as Checkpoint;
}

/** A stack with its first update, and a plan for the next program. */
async function planned(before: Source, after: Source, stack: Partial<StackSettings> = {}) {
  const plans = new Plans();
  const web = await plans.first.start();
  await web.prepare(before, stack);
  expect(await plans.run(web, { kind: "up" })).toMatchObject({ outcome: "succeeded" });
  await web.prepare(after, stack);
  const { result, plan } = await plans.preview(web);
  return { plans, web, plan, result };
}

/** The error of a run that must not have changed anything, and has no secret in any sink. */
async function refusal(plans: Plans, run: () => Promise<RunResult>): Promise<RunResult> {
  const before = plans.state();
  const result = await run();
  expect(result.outcome).toBe("failed");
  expect(plans.state()).toBe(before);
  expect(result.progress).toMatchObject({ created: 0, updated: 0, deleted: 0, replaced: 0, unchanged: 0 });
  const sinks = { ...(await plans.sinks()), result: JSON.stringify(result) };
  expect(Object.entries(sinks).flatMap(([sink, text]) => (text.includes("canary") ? [sink] : []))).toEqual([]);
  return result;
}

const token = { "fn::secret": "canary-output" };
const values = (a: string, b = "same") => program({ resources: { a: stash(a), b: stash(b) }, outputs: { token } });

describe("a plan", () => {
  const plans = new Plans();
  const outputs = { a: "${a.output}", b: "${b.output}", token: { "fn::secret": "canary-output" } };
  const source = (resources: object) => program({ resources, outputs });

  test("describes what it changes, with replacements and deletions first and without values", async () => {
    const web = await plans.first.start();
    await web.prepare(source({ a: stash("one"), b: stash("${a.output}"), old: stash("x") }));
    const { result, plan } = await plans.preview(web);
    expect(result.plan).toEqual({
      digest: plan.digest,
      changes: true,
      destructive: false,
      unknownInputs: 0,
      summary: [
        "4 to create",
        "create   pulumi:index:Stash a",
        "create   pulumi:index:Stash b",
        "create   pulumi:index:Stash old",
        "create   pulumi:pulumi:Stack demo-dev",
      ].join("\n"),
    });
    expect(plan.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(await plans.apply(web, plan)).toMatchObject({
      outcome: "succeeded",
      progress: { created: 4, unchanged: 0 },
    });
    await web.prepare(source({ a: stash("two"), b: stash("${a.output}"), fresh: stash("y") }));
    const next = await plans.preview(web, { replace: [urn("b")] });
    expect(next.result.plan).toMatchObject({
      destructive: true,
      summary: [
        "1 to replace, 1 to delete, 1 to create, 1 to update",
        "replace  pulumi:index:Stash b",
        "delete   pulumi:index:Stash old",
        "create   pulumi:index:Stash fresh",
        "update   pulumi:index:Stash a",
      ].join("\n"),
    });
    const applied = await plans.apply(web, next.plan, { replace: [urn("b")] });
    expect(applied).toMatchObject({
      outcome: "succeeded",
      progress: { created: 1, updated: 1, deleted: 1, replaced: 1, unchanged: 1 },
    });
  });

  test("that changes nothing says so", async () => {
    const { result } = await plans.preview(plans.first);
    expect(result.plan).toMatchObject({ changes: false, destructive: false, summary: "" });
  });

  test("is applied with a preview, and leaves no file with its content behind", async () => {
    const web = plans.first;
    await web.prepare(source({ a: stash("three"), b: stash("${a.output}") }));
    const { plan } = await plans.preview(web);
    expect(readdirSync(plans.lastRun(web)).toSorted()).not.toContain("plan.json");
    expect(statSync(join(plans.lastRun(web), "sealed-plan.json")).mode & 0o777).toBe(0o600);
    expect(await plans.apply(web, plan)).toMatchObject({ outcome: "succeeded" });
    const names = readdirSync(plans.lastRun(web));
    for (const name of ["plan.json", "applied-plan.json", "plan-basis.json"]) expect(names).not.toContain(name);
    expect(readFileSync(join(plans.lastRun(web), "run.json"), "utf8")).not.toContain(plan.content);
    const up = web.cliCalls().findLast((call) => / up /.test(call));
    expect(up).toContain("--plan=");
    expect(up).not.toContain("--skip-preview");
  });

  test("reports each change of the update once, and nothing of the check", async () => {
    const web = plans.first;
    await web.prepare(source({ a: stash("four"), b: stash("${a.output}"), d: stash("d") }));
    const { plan } = await plans.preview(web);
    await web.startRun("counted", { kind: "up", applyPlan: plan });
    const updates = await web.updates("counted");
    const changed = updates.flatMap((update) => {
      if (update.type !== "event" || update.event.kind !== "resource" || update.event.phase !== "finished") return [];
      return update.event.op === "same" ? [] : [`${update.event.op} ${update.event.urn.split("::").at(-1)}`];
    });
    expect(changed.toSorted()).toEqual(["create d", "update a"]);
    const last = updates.at(-1);
    expect(last?.type === "result" && last.result).toMatchObject({ changes: { create: 1, update: 1, same: 2 } });
    expect(web.log).not.toContain("canary");
  });

  test("belongs to a run that succeeded", async () => {
    const web = plans.first;
    const unknown = await web.agent.plan({ runId: "nope" });
    expect(unknown.ok || unknown.error.code).toBe("notFound");
    const update = await web.agent.plan({ runId: "counted" });
    expect(update.ok || update.error.code).toBe("unprepared");
  });

  test("counts the inputs that are unknown until it is applied", async () => {
    const web = plans.first;
    const random = { type: "pulumi:index:Stash", properties: { input: "${d.urn}-${later.id}" } };
    await web.prepare(source({ a: stash("four"), b: stash("${a.output}"), d: stash("d"), later: stash("z"), random }));
    const { result, plan } = await plans.preview(web);
    expect(result.plan).toMatchObject({ changes: true, unknownInputs: 1 });
    expect(await plans.apply(web, plan)).toMatchObject({ outcome: "succeeded" });
  });

  test("with an exported component is applied to the end", async () => {
    const web = plans.first;
    // The whole resource: its outputs are known only after it was created.
    const whole = program({ resources: { e: stash("e") }, outputs: { whole: "${e}" } });
    await web.prepare(whole);
    const { plan } = await plans.preview(web);
    expect(await plans.apply(web, plan)).toMatchObject({ outcome: "succeeded", exitCode: 0 });
  });
});

describe("in another pod with the same contents", () => {
  test("the same plan is applied, although paths, host name, ports and ciphertexts differ", async () => {
    const plans = new Plans();
    const web = await plans.first.start();
    const source = program({ config: { token: { type: "string" } }, resources: { a: stash("${token}") } });
    const stack = { config: [secretItem("canary-config")] };
    await web.prepare(source, stack);
    const { plan } = await plans.preview(web);
    const other = await plans
      .another({
        HOSTNAME: "other-workspace-0",
        PULUMI_ACCESS_TOKEN: "",
        KUBERNETES_SERVICE_HOST: "10.0.0.1",
        KUBERNETES_SERVICE_PORT: "443",
        KUBERNETES_PORT: "tcp://10.0.0.1:443",
        KUBERNETES_PORT_443_TCP_ADDR: "10.0.0.1",
      })
      .start();
    await other.prepare(source, stack);
    const applied = await plans.apply(other, plan);
    // PULUMI_ACCESS_TOKEN is not set in the first pod.
    expect(applied.error?.message).toContain("changed: configuration or environment");
    const same = await plans.another({ HOSTNAME: "third-workspace-0" }).start();
    await same.prepare(source, stack);
    expect(await plans.apply(same, plan)).toMatchObject({ outcome: "succeeded", progress: { created: 2 } });
  });
});

describe("what changed between preview and update", () => {
  test("another value, an extra resource or another program: refused before the CLI starts", async () => {
    const { plans, web, plan } = await planned(values("one"), values("two"));
    await web.prepare(values("three"));
    const result = await refusal(plans, () => plans.apply(web, plan));
    expect(result.error?.class).toBe("planChanged");
    expect(result.error?.message).toMatch(
      /^the approval is for plan sha256:[0-9a-f]{12}, the current plan is sha256:[0-9a-f]{12} \(changed: program\); nothing was changed$/,
    );
    expect(existsSync(join(plans.lastRun(web), "stdout-0.log"))).toBe(false);
    await web.prepare(values("two"));
    expect(await plans.apply(web, plan)).toMatchObject({ outcome: "succeeded", progress: { updated: 1 } });
  });

  test("configuration, whether a resource uses it or not: refused", async () => {
    const source = program({
      config: { used: { type: "string" }, unused: { type: "string" } },
      resources: { a: stash("${used}") },
    });
    const config = (used: string, unused: string) => ({
      config: [
        { key: "used", value: { from: "value" as const, value: used } },
        { key: "unused", value: { from: "value" as const, value: unused } },
      ],
    });
    const { plans, web, plan } = await planned(source, source, config("x", "y"));
    for (const changed of [config("other", "y"), config("x", "other")]) {
      await web.prepare(source, changed);
      const result = await refusal(plans, () => plans.apply(web, plan));
      expect(result.error).toMatchObject({ class: "planChanged" });
      expect(result.error?.message).toContain("(changed: configuration or environment)");
    }
  });

  test("options: refused", async () => {
    const { plans, web, plan } = await planned(values("one"), values("two"));
    const result = await refusal(plans, () => plans.apply(web, plan, { targets: [urn("a")] }));
    expect(result.error).toMatchObject({ class: "planChanged" });
    expect(result.error?.message).toContain("(changed: options)");
    const kind = await refusal(plans, () => plans.run(web, { kind: "destroy", applyPlan: plan }));
    expect(kind.error).toMatchObject({ class: "planChanged" });
  });

  test("a refresh, with which it was planned and without which it is applied: refused", async () => {
    const { plans, web } = await planned(values("one"), values("two"));
    const { plan } = await plans.preview(web, { refresh: true });
    const result = await refusal(plans, () => plans.apply(web, plan));
    expect(result.error).toMatchObject({ class: "planChanged" });
    expect(result.error?.message).toContain("(changed: options)");
    expect(web.cliCalls().some((call) => call.includes("--plan="))).toBe(false);
    expect(await plans.apply(web, plan, { refresh: true })).toMatchObject({
      outcome: "succeeded",
      progress: { updated: 1 },
    });
  });

  test("an expression over a value that is unknown in the preview: accepted, since nobody saw its result", async () => {
    const plans = new Plans();
    const web = await plans.first.start();
    const later = "${a.id}";
    const resources = (prefix: string) => ({ a: stash("one"), b: stash(`${prefix}-${later}`) });
    await web.prepare(program({ resources: resources("first") }));
    const { result, plan } = await plans.preview(web);
    expect(result.plan).toMatchObject({ unknownInputs: 1 });
    // Edited in the pod: as another program, the agent would refuse it.
    const edited = { name: "demo", runtime: "yaml", resources: resources("second") };
    writeFileSync(join(web.share, "workspace/Pulumi.yaml"), JSON.stringify(edited));
    expect(await plans.apply(web, plan)).toMatchObject({ outcome: "succeeded", progress: { created: 3 } });
    expect(plans.state()).toContain("second-");
  });

  test("an environment variable, or the image: refused", async () => {
    const { plans, plan } = await planned(values("one"), values("two"));
    const env = await plans.another({ REGION: "east" }).start();
    await env.prepare(values("two"));
    const result = await refusal(plans, () => plans.apply(env, plan));
    expect(result.error?.message).toContain("(changed: configuration or environment)");
    const backend = { PULUMI_BACKEND_URL: `file://${plans.first.backend}` };
    const image = await new TestWorkspace({ env: backend, flags: ["--image=pulumi/pulumi:3.260.0"] }).start();
    await image.prepare(values("two"));
    const other = await refusal(plans, () => plans.apply(image, plan));
    expect(other.error?.message).toContain("(changed: image)");
  });

  test("the state, in a resource that the plan changes or in another: stale", async () => {
    const { plans, web, plan } = await planned(values("one"), values("two"));
    for (const name of ["a", "b"]) {
      const state = plans.exportState();
      const resource = state.deployment.resources.find((each) => each.urn === urn(name));
      if (resource) resource.inputs["input"] = "outside";
      plans.importState(JSON.stringify(state));
      const result = await refusal(plans, () => plans.apply(web, plan));
      expect(result.error).toMatchObject({ class: "planStale" });
      // An import keeps the time of the last update.
      expect(result.error?.message).toMatch(
        /^plan sha256:[0-9a-f]{12} is stale: the state was changed without an update; nothing was changed$/,
      );
    }
  });

  test("another update: stale, and a used plan cannot be used again", async () => {
    const { plans, web, plan } = await planned(values("one"), values("two"));
    expect(await plans.apply(web, plan)).toMatchObject({ outcome: "succeeded" });
    const again = await refusal(plans, () => plans.apply(web, plan));
    expect(again.error).toMatchObject({ class: "planStale" });
    expect(again.error?.message).toMatch(
      /^plan sha256:[0-9a-f]{12} is stale: the state changed at 20\d\d-.*Z; nothing was changed$/,
    );
  });

  test("the stack's key: cannot be decrypted", async () => {
    const source = program({ resources: { a: stash({ "fn::secret": "canary-value" }) } });
    const { plans, web, plan } = await planned(values("one"), source);
    const state = plans.exportState();
    // The salt of another stack with the same passphrase.
    const other = await plans.another().start();
    await other.prepare(source, { name: "other" });
    const stack = join(plans.first.backend, ".pulumi/stacks/demo");
    const salt = readCheckpoint(join(stack, "other.json")).checkpoint.latest.secrets_providers;
    expect(salt).not.toEqual(state.deployment.secrets_providers);
    const file = join(stack, "dev.json");
    const checkpoint = readCheckpoint(file);
    checkpoint.checkpoint.latest.secrets_providers = salt;
    writeFileSync(file, JSON.stringify(checkpoint));
    const result = await refusal(plans, () => plans.apply(web, plan));
    expect(result.error).toMatchObject({ class: "planUnreadable" });
    expect(result.error?.message).toContain("cannot be decrypted: the stack's key changed; nothing was changed");
  });

  test("the plan itself: cannot be read", async () => {
    const { plans, web, plan } = await planned(values("one"), values("two"));
    const { content } = await planned(values("one"), values("other")).then((other) => other.plan);
    for (const damaged of [content, "", plan.content.slice(0, -40)]) {
      const result = await refusal(plans, () => plans.apply(web, { digest: plan.digest, content: damaged }));
      expect(result.error).toMatchObject({ class: "planUnreadable" });
      expect(result.error?.message).toContain("its content does not match its digest");
    }
  });
});

describe("a refusal of the CLI", () => {
  /** Reads a file that is not part of the program, so that no binding changes. */
  const reading = (file: string) =>
    program({
      variables: { text: { "fn::secret": { "fn::readFile": file } } },
      resources: { a: stash("${text}"), b: stash("same") },
      outputs: { text: "${text}" },
    });
  const canary = "canary-first\ncanary-second line";

  async function refused(plans: Plans) {
    const web = await plans.first.start();
    const file = join(web.root, "input");
    writeFileSync(file, "canary-planned");
    await web.prepare(reading(file));
    const { plan } = await plans.preview(web);
    writeFileSync(file, canary);
    return { web, plan, file };
  }

  test("changes nothing, names the resource, and no secret is in any sink", async () => {
    const plans = new Plans();
    const { web, plan } = await refused(plans);
    // The value is in no configuration, so nothing masks it.
    const result = await refusal(plans, () => plans.apply(web, plan, { logLevel: 8 }));
    expect(result.error?.class).toBe("planMismatch");
    expect(result.error?.message).toStartWith(
      `plan ${plan.digest.slice(0, 19)} no longer matches at ${urn("a")}; nothing was changed.`,
    );
    expect(result.changes).toEqual({});
    expect(result.output.tail).toContain("violates plan (values are not shown)");
    const runId = plans.lastRun(web).split("/").at(-1) ?? "";
    const updates = await web.updates(runId);
    expect(JSON.stringify(updates)).toContain("violates plan (values are not shown)");
  });

  test("of a program whose inputs differ in every run explains why none of its plans matches", async () => {
    const plans = new Plans();
    const web = await plans.first.start();
    await web.prepare(
      program({
        variables: { random: { "fn::readFile": "/proc/sys/kernel/random/uuid" } },
        resources: { a: stash("${random}") },
      }),
    );
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const { plan } = await plans.preview(web);
      const { error } = await refusal(plans, () => plans.apply(web, plan));
      expect(error?.class).toBe("planMismatch");
      expect(error?.message).toContain(`no longer matches at ${urn("a")}; nothing was changed`);
      expect(error?.message).toContain("a program whose inputs differ in every run");
    }
  });

  test("is possible without the cut: the CLI prints the value", async () => {
    const plans = new Plans();
    const { web, plan } = await refused(plans);
    // A copy of the CLI's output, taken when it exits.
    const raw = join(web.root, "raw");
    const copying = new TestWorkspace({
      env: { PULUMI_BACKEND_URL: `file://${web.backend}` },
      beforeCli: `case "$*" in *" up "*) '${pulumi}' "$@" > '${raw}' 2>&1; cat '${raw}'; exit 1;; esac`,
    });
    await copying.start();
    await copying.prepare(reading(join(web.root, "input")));
    const result = await refusal(plans, () => plans.apply(copying, plan));
    expect(result.error?.class).toBe("planMismatch");
    expect(readFileSync(raw, "utf8")).toContain("canary-first");
    expect(copying.log).not.toContain("canary");
  });

  test("of a program with an extra resource or deletion changes nothing", async () => {
    const plans = new Plans();
    const web = await plans.first.start();
    const two = values("one");
    await web.prepare(two);
    expect(await plans.run(web, { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    await web.prepare(values("two"));
    const { plan } = await plans.preview(web);
    // Edited in the pod, which does not change the source.
    const file = join(web.share, "workspace/Pulumi.yaml");
    const edits: readonly (readonly [string, object])[] = [
      [urn("extra"), { a: stash("two"), b: stash("same"), extra: stash("x") }],
      // Its error has no URN.
      ["a resource that the CLI does not name", { a: stash("two") }],
      [urn("a"), { a: stash("three"), b: stash("same") }],
    ];
    for (const [where, resources] of edits) {
      writeFileSync(file, JSON.stringify({ name: "demo", runtime: "yaml", resources, outputs: { token } }));
      const result = await refusal(plans, () => plans.apply(web, plan));
      expect(result.error?.class).toBe("planMismatch");
      expect(result.error?.message).toContain(`no longer matches at ${where}; nothing was changed`);
    }
    const resources = { a: stash("two"), b: stash("same") };
    writeFileSync(file, JSON.stringify({ name: "demo", runtime: "yaml", resources, outputs: { token } }));
    expect(await plans.apply(web, plan)).toMatchObject({ outcome: "succeeded" });
  });
});

describe("a plan that is refused in the middle", () => {
  /** Waits for its input each time it runs, and so may get another one in the update than in the check before it. */
  const gated = (first: string) =>
    program({
      variables: { slow: { "fn::readFile": "./gate" } },
      resources: {
        first: stash(first),
        second: { ...stash({ "fn::secret": "${slow}" }), options: { dependsOn: ["${first}"] } },
      },
    });

  async function gatedPlan() {
    const plans = new Plans();
    const web = await plans.first.start();
    await web.prepare(gated("one"));
    const gate = new Gate(web);
    await web.startRun("preview", { kind: "preview", savePlan: true });
    await gate.open("canary-planned");
    expect(await web.result("preview")).toMatchObject({ outcome: "succeeded" });
    return { plans, web, gate, plan: await web.plan("preview") };
  }

  test("reports where it stopped and how much it changed, without secrets", async () => {
    const { web, gate, plan } = await gatedPlan();
    await web.startRun("up", { kind: "up", applyPlan: plan });
    await gate.open("canary-planned");
    await web.until("up", isChanging);
    await gate.open("canary-other");
    const updates = await web.updates("up");
    const last = updates.at(-1);
    const result = last?.type === "result" ? last.result : undefined;
    expect(result).toMatchObject({ outcome: "failed", error: { class: "planStopped" } });
    // The engine may or may not have reported the stack itself, which it creates first.
    const created = result?.progress.created ?? 0;
    expect(created).toBeGreaterThan(0);
    const changes = created === 1 ? "1 change" : `${created} changes`;
    expect(result?.error?.message).toContain(
      `stopped at ${urn("second")} after ${changes}; the rest needs a new approval`,
    );
    for (const sink of [JSON.stringify(updates), web.log]) expect(sink).not.toContain("canary");
    for (const name of readdirSync(join(web.share, "runs/up"))) {
      expect(readFileSync(join(web.share, "runs/up", name), "utf8")).not.toContain("canary");
    }
  });

  test("is followed to its end by the next agent process, before and during the changes", async () => {
    const { web, gate, plan } = await gatedPlan();
    await web.startRun("up", { kind: "up", applyPlan: plan });
    await web.until("up", isLocked);
    await web.kill("SIGKILL");
    await web.start();
    await gate.open("canary-planned");
    await web.until("up", isChanging);
    await web.kill("SIGKILL");
    await web.start();
    await gate.open("canary-planned");
    const result = await web.result("up");
    expect(result).toMatchObject({
      outcome: "succeeded",
      progress: { created: 3, unchanged: 0 },
      changes: { create: 3 },
    });
    const names = readdirSync(join(web.share, "runs/up"));
    for (const name of ["plan.json", "applied-plan.json"]) expect(names).not.toContain(name);
  });

  test("that was only checked when its process died is interrupted, not successful", async () => {
    const { plans, web, plan } = await gatedPlan();
    const before = plans.state();
    await web.startRun("up", { kind: "up", applyPlan: plan });
    await web.until("up", isLocked);
    await web.kill("SIGKILL");
    const record = readFileSync(join(web.share, "runs/up/run.json"), "utf8");
    const { launches } = JSON.parse(record) as { launches: [{ pid: number }] };
    process.kill(-launches[0].pid, "SIGKILL");
    await web.start();
    expect(await web.result("up")).toMatchObject({ outcome: "interrupted", changes: {} });
    expect(plans.state()).toBe(before);
  });

  /** By then the record has the process, so the next agent process finds it. */
  const isLocked = (update: WatchUpdate): boolean => update.type === "event" && update.event.kind === "notice";

  const isChanging = (update: WatchUpdate): boolean =>
    update.type === "event" && update.event.kind === "resource" && update.event.urn.includes("Stack::demo-dev");
});

describe("a destroy", () => {
  async function destroyable() {
    const plans = new Plans();
    const web = await plans.first.start();
    await web.prepare(values("one", "two"));
    expect(await plans.run(web, { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    const before = plans.state();
    const result = await plans.run(web, { kind: "destroy", previewOnly: true, savePlan: true });
    expect(plans.state()).toBe(before);
    const plan = await web.plan(plans.lastRun(web).split("/").at(-1) ?? "");
    return { plans, web, result, plan };
  }

  test("has a plan of its deletions, and is applied once", async () => {
    const { plans, web, result, plan } = await destroyable();
    expect(result).toMatchObject({ outcome: "succeeded", operation: "destroy" });
    expect(result.plan).toMatchObject({
      digest: plan.digest,
      changes: true,
      destructive: true,
      summary: [
        "3 to delete",
        "delete   pulumi:index:Stash a",
        "delete   pulumi:index:Stash b",
        "delete   pulumi:pulumi:Stack demo-dev",
      ].join("\n"),
    });
    const destroyed = await plans.run(web, { kind: "destroy", applyPlan: plan });
    expect(destroyed).toMatchObject({ outcome: "succeeded", progress: { deleted: 3 }, changes: { delete: 3 } });
    const again = await plans.run(web, { kind: "destroy", applyPlan: plan });
    expect(again.error?.class).toBe("planStale");
  });

  test("removes the stack only if the plan does", async () => {
    const { plans, web, plan } = await destroyable();
    const result = await refusal(plans, () => plans.run(web, { kind: "destroy", remove: true, applyPlan: plan }));
    expect(result.error?.message).toContain("(changed: options)");
    const kept = await plans.run(web, { kind: "destroy", previewOnly: true, savePlan: true, remove: true });
    expect(kept).toMatchObject({ outcome: "succeeded" });
    const removing = await web.plan(plans.lastRun(web).split("/").at(-1) ?? "");
    const removed = await plans.run(web, { kind: "destroy", remove: true, applyPlan: removing });
    expect(removed).toMatchObject({ outcome: "succeeded" });
    expect(existsSync(join(web.backend, ".pulumi/stacks/demo/dev.json"))).toBe(false);
  });

  test("is stale after another update, and does not match if it would delete something else", async () => {
    const { plans, web, plan } = await destroyable();
    const file = join(plans.first.backend, ".pulumi/stacks/demo/dev.json");
    // Someone changes the state after the agent has compared it.
    const racing = new TestWorkspace({
      env: { PULUMI_BACKEND_URL: `file://${web.backend}` },
      beforeCli: `case "$*" in *--preview-only*) sed -i 's/"input":"two"/"input":"outside"/; s/"input": "two"/"input": "outside"/' '${file}';; esac`,
    });
    await racing.start();
    await racing.prepare(values("one", "two"));
    const mismatch = await plans.run(racing, { kind: "destroy", applyPlan: plan });
    expect(mismatch).toMatchObject({ outcome: "failed", error: { class: "planMismatch" }, changes: {} });
    expect(mismatch.error?.message).toContain(`no longer matches at ${urn("b")}; nothing was changed`);
    expect(racing.cliCalls().filter((call) => call.includes(" destroy "))).toHaveLength(1);
    expect(plans.state()).toContain(urn("b"));
    const stale = await refusal(plans, () => plans.run(web, { kind: "destroy", applyPlan: plan }));
    expect(stale.error?.class).toBe("planStale");
  });
});
