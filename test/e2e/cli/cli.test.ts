/** kubectl-pulumi as users run it: the built executable, a real operator, real pods, and a pseudo-terminal where it asks. */
import { join } from "node:path";

import type { Stack } from "@pko/api";
import { clusterKubeconfig } from "@pko/cluster";
import { firstLine } from "@pko/testkit";
import { expect, test } from "bun:test";

import {
  applyTo,
  at,
  cliExecutable,
  CliUser,
  execInPod,
  hasReason,
  isAt,
  isReady,
  newProgram,
  newStack,
  stackUntil,
  untilApprovalsAreChecked,
  untilEvents,
  useScene,
} from "../harness.ts";

const slow = 600_000;
const scene = useScene("cli");
const cli = new CliUser(() => scene);

const outputs = { text: "hello", password: { "fn::secret": "hunter2" } };
const cause = async (stack: string): Promise<string> => (await cli.why(stack)).cause;

test(
  "a Stack from its first update to a lock that a stranger left",
  async () => {
    await applyTo(
      scene,
      newProgram("greeting", { outputs }),
      // No retry while the lock is examined and removed.
      newStack("web", { programRef: { name: "greeting" }, maxFailures: 1 }),
      // It waits, so it needs no pod.
      newStack("shop", {
        programRef: { name: "greeting" },
        prerequisites: [{ name: "web" }],
        suspend: true,
        // The Go operator ignores the second field.
        refresh: true,
        expectNoRefreshChanges: true,
      }),
    );
    await stackUntil(scene, "web", isReady);

    expect(await cli.text("get")).toMatch(/web +Ready/);
    expect(await cli.text("get", "web")).toContain("hello");
    expect(await cli.text("outputs", "web")).toContain("[secret]");
    expect(await cli.text("outputs", "web", "--show-secrets")).toContain("hunter2");
    const { items } = await cli.json<{ items: { name: string; state: string }[] }>("history", "web");
    const [update = { name: "", state: "" }] = items;
    expect(update.state).toBe("succeeded");
    expect(await cli.text("show", update.name)).toMatch(/Changes: +1 created/);
    expect(await cli.text("diff", update.name)).toContain(`Update ${update.name} of Stack web`);
    expect(await cli.text("logs", "web")).toContain("Updating (web):");
    const log = await cli.text("logs", update.name);
    expect(log).toContain("run started");
    expect(log.trimEnd()).toEndWith("outcome=succeeded]");
    await untilEvents(scene, "web", "StackCreated");
    expect(await cli.text("events", "web")).toContain("StackCreated");

    // Someone else's lock.
    const folder = "/state/.pulumi/locks/organization/greeting/web";
    const lock = { pid: 1, username: "root", hostname: "elsewhere", timestamp: new Date().toISOString() };
    await execInPod(scene, "web", `mkdir -p ${folder} && echo '${JSON.stringify(lock)}' > ${folder}/stranger.json`);
    const conflict = await cli.run("reconcile", "web", "--wait", "--timeout", "4m");
    expect(conflict.code).toBe(1);
    await stackUntil(scene, "web", hasReason("RetriesExhausted"));
    const locked = await cli.why("web");
    expect(locked.cause).toBe("locked");
    expect(locked.next.join("\n")).toContain("remove its lock: kubectl pulumi unlock web");
    expect((await cli.run("unlock", "web")).code).toBe(6);
    const unlocked = await cli.answer("y", ["unlock", "web"], /Removed the lock/);
    expect(unlocked.out).toContain("elsewhere");
    expect(unlocked.code).toBe(0);
    await cli.text("reconcile", "web", "--wait", "--timeout", "4m");
    expect(await cause("web")).toBe("upToDate");
  },
  slow,
);

test(
  "the graph, a suspension and a drift check",
  async () => {
    expect(await cli.text("graph")).toMatch(/s0\["shop<br\/>Waiting"\][^]*s1\["web<br\/>Ready"\][^]*s1 --> s0/);
    expect(await cli.text("graph", "-o", "dot")).toContain(`"${scene.namespace}/web" -> "${scene.namespace}/shop"`);
    expect(await cli.text("graph", "-o", "svg")).toStartWith("<svg");

    expect(await cli.text("suspend", "web")).toContain("Stack web is suspended.");
    await stackUntil(scene, "web", hasReason("Suspended"));
    expect(await cause("web")).toBe("suspended");
    expect(await cli.text("resume", "web")).toContain("Stack web is resumed.");
    await stackUntil(scene, "web", isReady);

    expect(await cli.text("drift", "web", "--wait")).toContain("The resources match the state.");
    const nothing = await cli.run("cancel", "web", "--yes");
    expect([nothing.code, nothing.err]).toEqual([1, expect.stringContaining("nothing to cancel") as string]);
  },
  slow,
);

const isAwaiting = ({ status }: Stack): boolean => status?.approval?.state === "Pending";

test(
  "a plan that is rejected, and one that is approved",
  async () => {
    await untilApprovalsAreChecked(scene);
    // Before the Program, which would otherwise be deployed without a plan if the operator saw it first.
    await applyTo(scene, newStack("web", { programRef: { name: "greeting" }, approval: { required: "Always" } }));
    await stackUntil(scene, "web", isReady);
    const resources = { page: { type: "pulumi:index:Stash", properties: { input: "page" } } };
    await applyTo(scene, newProgram("greeting", { outputs, resources }));
    await stackUntil(scene, "web", isAwaiting);
    expect(await cause("web")).toBe("awaitingApproval");
    const plan = await cli.text("diff", "web");
    expect(plan).toContain("Stack web waits for an approval of the plan of Update");
    expect(plan).toMatch(/create +pulumi:index:Stash page/);

    const declined = await cli.answer("n", ["reject", "web"], /Not confirmed; nothing was changed\./);
    expect(declined.code).toBe(6);
    const rejected = await cli.answer("y", ["reject", "web", "--reason", "not on a Friday"], /was rejected by/);
    expect(rejected.code).toBe(0);
    expect(rejected.out).toContain("create   pulumi:index:Stash page");
    await stackUntil(scene, "web", hasReason("ApprovalRejected"));
    const why = await cli.why("web");
    expect(why.cause).toBe("approvalRejected");
    expect(why.message).toContain("not on a Friday");

    await cli.text("reconcile", "web");
    await stackUntil(scene, "web", isAwaiting);
    const approved = await cli.answer("y", ["approve", "web"], /was approved by/);
    expect(approved.code).toBe(0);
    await stackUntil(scene, "web", isAt("2"));
    expect(await cause("web")).toBe("upToDate");
  },
  slow,
);

test("version, check and completion", async () => {
  expect(await cli.text("version")).toMatch(/kubectl-pulumi: +\d[^]*Kubernetes: +v1\./);
  const { checks, differences } = await checkWithMigration();
  const passed = checks.filter(({ result }) => result === "ok").map(({ name }) => name);
  expect(passed).toContain("Kubernetes");
  expect(passed).toContain("Stacks");
  const fields = differences.filter(({ name }) => name === "shop").map(({ field }) => field);
  expect(fields).toContain("spec.expectNoRefreshChanges");
  expect(await complete("why", ...at(scene), "")).toMatch(/^shop\nweb\n/);
  for (const shell of ["bash", "zsh", "fish", "kubectl"]) {
    expect(await cli.text("completion", shell)).toContain("__complete");
  }
});

interface CheckReport {
  readonly checks: readonly { readonly name: string; readonly result: string }[];
  readonly differences: readonly { readonly name: string; readonly field: string }[];
}

/** It fails if there is no Lease: an operator of a test has none. */
async function checkWithMigration(): Promise<CheckReport> {
  const { out } = await cli.run("check", "--migrate", "-o", "json");
  return JSON.parse(out) as CheckReport;
}

/** As a completion script calls it. The last word is the one to complete. */
async function complete(...words: readonly string[]): Promise<string> {
  const env = { KUBECONFIG: clusterKubeconfig() };
  const child = Bun.spawn([await cliExecutable(), "__complete", ...words], { stdout: "pipe", env });
  return await new Response(child.stdout).text();
}

test("a support bundle has the objects and logs, and no secrets", async () => {
  const file = join(scene.folder, "bundle.tar.gz");
  // How the lines are wrapped depends on the path.
  const printed = (await cli.text("support-bundle", "--file", file)).replaceAll(/\s+/g, " ");
  expect(printed).toMatch(/^Wrote .* with \d+ files\. Read it before you share it/);
  const archive = await new Bun.Archive(await Bun.file(file).bytes()).files();
  const read = async (name: string): Promise<string> => (await archive.get(name)?.text()) ?? "";
  expect(await read("stacks.yaml")).toContain("name: web");
  expect(await read(`logs/${scene.namespace}/web-workspace-0.log`)).toContain("Updating (web):");
  const texts = await Promise.all([...archive.keys()].map(read));
  expect(texts.join("\n")).not.toContain("hunter2");
});

test("the console is served until it is interrupted, to whoever has the token", async () => {
  const command = [await cliExecutable(), "ui", "--no-open", "--kubeconfig", clusterKubeconfig()];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  const url = new URL(await firstLine(child.stdout));
  const send = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const headers = { host: url.host, origin: url.origin, "x-pulumi-console": "1", ...(init.headers as object) };
    return await fetch(`http://127.0.0.1:${url.port}${path}`, { ...init, headers });
  };
  const page = await send("/", { headers: { accept: "text/html" } });
  expect(await page.text()).toContain("<script");
  const stacks = `/k8s/apis/pulumi.com/v1/namespaces/${scene.namespace}/stacks`;
  expect((await send(stacks)).status).toBe(401);
  const session = await send("/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: url.hash.replace("#token=", "") }),
  });
  const cookie = session.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect(await (await send(stacks, { headers: { cookie } })).text()).toContain('"name":"web"');
  child.kill("SIGINT");
  expect(await child.exited).toBe(0);
});
