/** `make deploy` installs the chart with this clone's image, and can be repeated. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";

import { attempt, clusterKubeconfig, repositoryRoot } from "@pko/cluster";

import { assertCleanLogs, kubectl, localTest, publishedImage, useScene } from "../harness.ts";
import { helm } from "./helm.ts";

const slow = 300_000;
const name = "pulumi-kubernetes-operator";
const scene = useScene("deploy", { operator: "none" });
const values = join(scene.folder, "values.yaml");

beforeAll(async () => {
  scene.defer(() => helm("uninstall", name, "-n", name, "--wait", "--ignore-not-found"));
  const served = {
    // Other tests use the cluster at the same time.
    watchNamespaces: [scene.namespace],
    crds: { upgrade: false },
    // A busy machine must not cause errors in the log.
    kubeAPI: { timeout: "180s" },
  };
  await Bun.write(values, JSON.stringify(served));
});

const deploy = (env: Readonly<Record<string, string | undefined>> = {}) =>
  attempt(["make", "-s", "deploy", `VALUES=${values}`], { cwd: repositoryRoot, env });

test(
  "installs this clone's image, and can be repeated",
  async () => {
    for (const revision of ["1", "2"]) {
      const { code, stderr } = await deploy();
      expect(stderr).toContain("the operator is running");
      expect(code).toBe(0);
      const output = await helm("list", "-n", name, "-o", "json");
      expect(JSON.parse(output)).toMatchObject([{ name, revision, status: "deployed" }]);
    }
    const image = await kubectl(["get", "deployment", "-n", name, "-o", "jsonpath={..containers[0].image}"]);
    expect(image).toBe(await publishedImage());
    await assertCleanLogs(name, `app.kubernetes.io/instance=${name}`);
  },
  slow,
);

localTest(test, "its context is named local")(
  "reports in one line that a cluster of the user's own needs an image",
  async () => {
    const { code, stderr } = await deploy({ CLUSTER_KUBECONFIG: clusterKubeconfig(), REGISTRY: "", IMAGE: "" });
    expect(code).not.toBe(0);
    const lines = stderr.split("\n").filter((line) => line.startsWith("error:"));
    expect(lines).toEqual([
      "error: the cluster of context local pulls images from a registry: set REGISTRY to a registry that this machine can push to " +
        "and the cluster can pull from (registry.example.com/team), or IMAGE to an image that it can pull",
    ]);
  },
  slow,
);
