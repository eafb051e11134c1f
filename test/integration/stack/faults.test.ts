/** An API server that fails, and secrets in every input. */
import { expect, test } from "bun:test";
import { builtin, logger } from "@pko/kube";
import { stacks, updates, workspaces } from "@pko/operator";
import { faultProxy, randomForKeys, testSeed, waitFor, type Verdict } from "@pko/testkit";

import { testTimeoutMs, StackScene } from "./scene.ts";
import { live, undisturbedRuns } from "./life.ts";

const failures: readonly [Verdict, ...Verdict[]] = [
  { status: 500 },
  { status: 503, retryAfterSeconds: 0 },
  { status: 429, retryAfterSeconds: 0 },
  { status: 409 },
  { cut: "before" },
  { cut: "after" },
];

test("one request in six fails, and the same updates run", async () => {
  let faults = 0;
  const seed = testSeed("failing requests");
  const lives = Array.from({ length: 4 }, async (_, life) => {
    const random = randomForKeys(seed + life);
    await using scene = await StackScene.open("without operator");
    await using proxy = await faultProxy(scene.rights.credentials);
    proxy.on(({ method, path }) => {
      const numbers = random(`${method} ${path.replace(scene.namespace, "NS")}`);
      if (numbers.next() > 1 / 6) return undefined;
      faults++;
      return numbers.pick(failures);
    });
    scene.start({ client: scene.rights.connect(proxy.credentials) });
    const { runs } = await live(scene);
    expect(runs).toEqual(undisturbedRuns);
    await scene.stop();
  });
  await Promise.all(lives);
  console.log(`    ${faults} faults in ${lives.length} lives`);
  expect(faults).toBeGreaterThan(20);
}, 240_000);

test(
  "secrets appear in no status, event, log, metric or other object",
  async () => {
    const canary = "canary-4711";
    const lines: string[] = [];
    await using scene = await StackScene.open({
      log: logger({ level: "debug", write: (line) => void lines.push(line) }),
    });
    await scene.program("program");
    const metadata = { namespace: scene.namespace, name: "secrets" };
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata,
      stringData: { token: canary, username: canary, password: canary },
    };
    await scene.client.create(builtin.secrets, secret);
    scene.simulator.script.update = () => ({ end: "succeeded", outputs: { password: canary }, secrets: ["password"] });
    const from = (key: string) => ({ type: "Secret", secret: { name: "secrets", key } });
    await scene.stack("base");
    await scene.isReady("base");
    await scene.stack("web", {
      envRefs: { TOKEN: from("token"), OUTPUT: { type: "StackOutput", stack: "base", output: "password" } },
      secretsRef: {
        "web:password": from("password"),
        "web:other": { type: "StackOutput", stack: "base", output: "password" },
      },
    });
    await scene.isReady("web");
    await scene.stack("git", {
      projectRepo: "https://127.0.0.1:1/repo.git",
      branch: "main",
      gitAuth: { basicAuth: { userName: from("username"), password: from("password") } },
    });
    await scene.becomes(
      "git",
      "unreachable",
      ({ status }) => status?.conditions?.some(({ type }) => type === "Stalled") ?? false,
    );
    const { namespace } = scene;
    const hasEvent = async (): Promise<boolean> =>
      (await scene.client.list(builtin.events, { namespace })).items.some(({ regarding }) => regarding?.name === "git");
    await waitFor(hasEvent, { what: "the last event" });
    const sinks = {
      stacks: (await scene.client.list(stacks, { namespace })).items,
      workspaces: (await scene.client.list(workspaces, { namespace })).items,
      updates: (await scene.client.list(updates, { namespace })).items,
      events: (await scene.client.list(builtin.events, { namespace })).items,
      logs: lines,
      metrics: scene.operator.metrics.expose(),
    };
    expect(lines.length).toBeGreaterThan(10);
    expect(sinks.events.length).toBeGreaterThan(0);
    for (const [sink, content] of Object.entries(sinks)) {
      for (const form of [canary, btoa(canary), btoa(`${canary}:${canary}`)]) {
        expect([sink, JSON.stringify(content).includes(form)]).toEqual([sink, false]);
      }
    }
  },
  testTimeoutMs,
);
