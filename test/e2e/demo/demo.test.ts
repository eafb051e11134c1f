/** `make demo`, twice: the second run removes the objects of the first, and no others. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { attempt, clusterKubeconfig, kubectlCommand, repositoryRoot } from "@pko/cluster";
import { operatorNamespace } from "@pko/install";

import {
  assertCleanAgentLogs,
  assertCleanLogs,
  clusterClient,
  defaultTimeout,
  kubectl,
  publishedImage,
} from "../harness.ts";

type Environment = Readonly<Record<string, string>>;

async function demo(example = "", env: Environment = {}): Promise<{ readonly code: number; readonly output: string }> {
  const options = { cwd: repositoryRoot, env: { NO_COLOR: "1", EXAMPLE: example, ...env } };
  const { code, stdout, stderr } = await attempt(["make", "demo"], options);
  return { code, output: stdout + stderr };
}

const folder = mkdtempSync(join(tmpdir(), "pko-demo-"));

/** A machine that has kubectl and Node.js, but neither Go nor what was built here. */
function machineWithoutGo(): Environment {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  for (const name of ["make", "sh", "bash", "node", "npm", "awk", "touch", "env", "uname"]) {
    const path = Bun.which(name);
    if (path !== null) symlinkSync(path, join(bin, name));
  }
  const [kubectlPath = ""] = kubectlCommand();
  symlinkSync(kubectlPath, join(bin, "kubectl"));
  return { PATH: bin, PKO_CACHE: join(folder, "cache") };
}

/** Otherwise the printed commands have these too, from the environment of the tests or `make test CONTEXT=name`. */
const onlyGiven: Environment = { CONTEXT: "", REGISTRY: "", MAKEFLAGS: "" };

/** Of the operator and of the agents that exist now: their pods are deleted after the tests. */
async function expectCleanLogs(): Promise<void> {
  await assertCleanLogs(operatorNamespace, `app.kubernetes.io/name=${operatorNamespace}`, defaultTimeout);
  await assertCleanAgentLogs({ client: await clusterClient(), namespace: "default" });
}

describe("make demo", () => {
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await kubectl(["delete", "stack", "shop", "--namespace=default", "--ignore-not-found", "--timeout=180s"]);
    await kubectl(["delete", "-f", join(repositoryRoot, "examples/program"), "--ignore-not-found"]);
    // This operator serves every namespace, including those of other tests.
    await kubectl(["delete", "deployment", "--all", "--namespace=pulumi-kubernetes-operator", "--timeout=180s"]);
  }, 400_000);

  test("deploys the example, changes it in the same workspace, and gives a tour", async () => {
    const { code, output } = await demo();
    expect(output).toContain("+ settings  pulumi:index:Stash");
    expect(output).toMatch(/shop: ready: up succeeded \(5 created\)/);
    expect(output).toContain("https://shop.example.com");
    expect(output).toContain("~ settings  pulumi:index:Stash");
    expect(output).toContain("https://market.example.com");
    expect(output).toContain("adminPassword  [secret]");
    // The tour: each of these is output of another command.
    expect(output).toContain("there is no Secret shop-admn");
    expect(output).toMatch(/The plan of Update \S+ was approved by/);
    expect(output).toMatch(/\[main \w+\] Sell lemons/);
    expect(output).toContain("release:        market.example.com sells lemons for GBP");
    expect(output).toContain("release:        market.example.com sells apples for GBP");
    expect(output).toContain("1 resource differs from the state: pulumi:pulumi:StackReference addresses");
    expect(output).toMatch(/^\$ kubectl delete stack addresses firewall$/m);
    expect(output).toContain('stack.pulumi.com "firewall" deleted');
    expect(output).toContain("http://127.0.0.1:8001");
    expect(code).toBe(0);
    // Its first next step makes all of these commands available in a shell.
    const [setup = ""] = /export KUBECONFIG=.*/.exec(output) ?? [];
    const get = await attempt(["sh", "-c", `${setup}; kubectl pulumi get shop`]);
    expect(get.stdout + get.stderr).toMatch(/State: +Ready/);
    await expectCleanLogs();
  }, 600_000);

  test("can be repeated after an interrupted tour, on a cluster of the user's own: with kubectl from the PATH, without Go, and building nothing of Kubernetes", async () => {
    const secretsRef = { adminPassword: { secret: { name: "shop-admn" } } };
    const left = JSON.stringify({ spec: { approval: { required: "Always" }, secretsRef } });
    await kubectl(["patch", "stack", "shop", "--namespace=default", "--type=merge", `--patch=${left}`]);
    const env = machineWithoutGo();
    const image = await publishedImage();
    const given = { CLUSTER_KUBECONFIG: clusterKubeconfig(), IMAGE: image, ...onlyGiven };
    const { code, output } = await demo("program", { ...env, ...given });
    expect(output).toContain("using the cluster of CLUSTER_KUBECONFIG; no local cluster is started");
    expect(output).toMatch(/shop: ready: up succeeded \(5 created\)/);
    expect(output).not.toContain("make cluster-down");
    expect(output).toContain(
      `make demo EXAMPLE=structured-config CLUSTER_KUBECONFIG=${clusterKubeconfig()} IMAGE=${image} `,
    );
    expect(output).toContain("kubectl delete -f examples/program --namespace default --ignore-not-found ");
    expect(output).toContain("kubectl delete -f deploy/quickstart/install.yaml ");
    expect(existsSync(join(folder, "cache"))).toBe(false);
    expect(code).toBe(0);
    await expectCleanLogs();
  }, 600_000);

  test("neither changes nor deletes an object that no demo has created", async () => {
    const objects = ["stack/shop", "secret/shop-admin", "--namespace=default"];
    await kubectl(["label", ...objects, "app.kubernetes.io/managed-by-"]);
    const read = (): Promise<string> => kubectl(["get", ...objects, "--output=jsonpath={.items[*].metadata.uid}"]);
    const before = await read();
    const { code, output } = await demo("program");
    expect(output).toContain("error: Secret shop-admin exists in namespace default, and no demo has created it");
    expect(output).toContain("error: Stack shop exists");
    expect(code).not.toBe(0);
    expect(await read()).toBe(before);
  }, 120_000);

  test("lists the examples when the requested one does not exist", async () => {
    const { code, output } = await demo("nonsense");
    expect(output).toContain("error: there is no example nonsense: choose from");
    expect(code).not.toBe(0);
  });
});
