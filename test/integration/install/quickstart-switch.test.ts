/** Switching from the Go operator's quickstart manifest to ours, and back, with the commands of docs/migration.md. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { startApiServer, type ApiServer } from "@pko/testkit";

import { testTimeoutMs, pathTo, quickstart } from "../api/install.ts";

const reference = fileURLToPath(new URL("testdata/reference-quickstart.yaml", import.meta.url));
let server: ApiServer;

beforeAll(async () => {
  server = await startApiServer();
}, testTimeoutMs);

afterAll(() => server.stop());

const namesIn = (output: string): string[] => output.split("\n").filter((line) => line !== "");

/** The arguments of the command in the page that starts with `prefix`. */
function documentedCommand(prefix: string): string[] {
  const page = readFileSync(pathTo("../../../docs/migration.md"), "utf8").replaceAll("\\\n", " ");
  const line = page.split("\n").find((each) => each.trim().startsWith(prefix));
  if (line === undefined) throw new Error(`docs/migration.md has no command ${prefix}`);
  return line.trim().split(/\s+/).slice(1);
}

test(
  "our objects are the same as on a new cluster, and the documented commands delete the remaining objects of the Go operator",
  async () => {
    // As its docs recommend, because its CRDs are too large for a client-side apply.
    await server.kubectl(["apply", "--server-side", "--filename", reference]);
    const before = namesIn(await server.kubectl(["get", "--output=name", "--filename", reference]));
    expect(before).toHaveLength(19);

    const apply = documentedCommand("kubectl apply --server-side --force-conflicts");
    await server.kubectl(apply.map((word) => (word.endsWith("install.yaml") ? quickstart : word)));
    const read = async (kind: string, name: string, path: string): Promise<string> => {
      const place = ["--namespace=pulumi-kubernetes-operator", `--output=jsonpath=${path}`];
      return await server.kubectl(["get", kind, name, ...place]);
    };
    const container = "{.spec.template.spec.containers[0]";
    const deployed = (path: string): Promise<string> => read("deployment", "controller-manager", path);
    expect(await deployed(`${container}.image}`)).toBe("docker.io/pulumi/pulumi-kubernetes-operator:v3.0.0");
    expect(await deployed(`${container}.args}`)).not.toContain("program-fs");
    expect(await deployed(`${container}.env[*].name}`)).not.toContain("LEADER_ELECTION");
    expect(await deployed(`${container}.ports[*].name}`)).toBe("http-metrics http-probes");
    expect(await deployed(`${container}.resources.limits}`)).toBe('{"memory":"512Mi"}');
    expect(await read("service", "pulumi-kubernetes-operator", "{.spec.ports[*].name}")).toBe("http-metrics");

    const kept = new Set(namesIn(await server.kubectl(["get", "--output=name", "--filename", quickstart])));
    const remaining = before.filter((name) => !kept.has(name));
    const deletions = [
      documentedCommand("kubectl delete service,role"),
      documentedCommand("kubectl delete clusterrole,"),
    ];
    for (const words of deletions) await server.kubectl(words);
    const after = namesIn(
      await server.kubectl(["get", "--ignore-not-found", "--output=name", "--filename", reference]),
    );
    expect(after.filter((name) => remaining.includes(name))).toEqual([]);
    expect(remaining).toContain("service/controller-manager-metrics-service");
    // They delete none of our objects except for an unused binding.
    const ours = namesIn(
      await server.kubectl(["get", "--ignore-not-found", "--output=name", "--filename", quickstart]),
    );
    expect([...kept].filter((name) => !ours.includes(name) && !name.includes("auth-delegator"))).toEqual([]);
  },
  testTimeoutMs,
);

test(
  "the way back leaves nothing of ours but the CRDs, and everything of the Go operator",
  async () => {
    await server.kubectl(["apply", "--server-side", "--force-conflicts", "--filename", reference]);
    const deletions = [
      documentedCommand("kubectl delete validatingadmissionpolicybinding,"),
      documentedCommand("kubectl delete clusterrolebinding,"),
    ];
    for (const words of deletions) await server.kubectl(words);

    const theirs = namesIn(await server.kubectl(["get", "--output=name", "--filename", reference]));
    expect(theirs).toHaveLength(19);
    const ours = namesIn(
      await server.kubectl(["get", "--ignore-not-found", "--output=name", "--filename", quickstart]),
    );
    const left = ours.filter((name) => !theirs.includes(name) && !name.startsWith("customresourcedefinition"));
    expect(left).toEqual([]);
  },
  testTimeoutMs,
);
