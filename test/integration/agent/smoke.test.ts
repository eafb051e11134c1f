import { expect, test } from "bun:test";
import { program, stash, TestWorkspace } from "./harness.ts";

test("smoke", async () => {
  const web = await new TestWorkspace().start();
  const source = program({
    resources: { a: stash("hello") },
    outputs: { x: "${a.output}", s: { "fn::secret": "hidden" } },
  });
  const t0 = performance.now();
  console.log(await web.prepare(source), performance.now() - t0);
  const t1 = performance.now();
  const result = await web.run("run-1", { kind: "up" });
  console.log(JSON.stringify(result, null, 1), performance.now() - t1);
  console.log(await web.outputs("run-1"));
  console.log(web.cliCalls().join("\n"));
  console.log(web.log);
  expect(result.outcome).toBe("succeeded");
}, 60_000);
