/** The API server accepts every manifest of the docs and the examples, and the operator can normalize every Stack. */
import { existsSync } from "node:fs";
import { join } from "node:path";

import { describeProblems, normalizeStack } from "@pko/api";
import { toolPath } from "@pko/cluster";
import type { ApiServer } from "@pko/testkit";
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { root } from "../../docs/pages.ts";
import { apiServerWithApi, testTimeoutMs } from "../api/install.ts";
import { exampleManifests, pageManifests, valuesBlocks, type Manifest } from "./manifests.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;
const manifests = [...exampleManifests, ...pageManifests];

beforeAll(async () => {
  server = await apiServerWithApi();
  const names = new Set(
    manifests.flatMap(({ objects }) => objects.flatMap(({ metadata }) => metadata.namespace ?? [])),
  );
  if (names.size === 0) return;
  const items = [...names].map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } }));
  await server.kubectl(["apply", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) });
}, testTimeoutMs);

test("the docs and the examples contain manifests", () => {
  expect(exampleManifests.length).toBeGreaterThan(20);
  expect(pageManifests.length).toBeGreaterThan(20);
});

test("no two examples declare the same object, so they can share a namespace", () => {
  const declared = exampleManifests
    .filter(({ where }) => !where.includes("/change/"))
    .flatMap(({ where, objects }) =>
      objects.map(({ kind, metadata }) => ({
        name: `${kind} ${metadata.namespace ?? "-"}/${metadata.name}`,
        example: where.split("/")[1],
      })),
    );
  const shared = [...Map.groupBy(declared, ({ name }) => name)].filter(
    ([, uses]) => new Set(uses.map(({ example }) => example)).size > 1,
  );
  expect(shared).toEqual([]);
});

describe("kubectl apply --dry-run=server --validate=strict accepts", () => {
  for (const { where, objects, problem } of manifests) {
    test(where, async () => {
      expect(problem).toBeUndefined();
      if (!(await allAreAccepted())) await apply(objects);
    });
  }
});

async function apply(items: Manifest["objects"]): Promise<void> {
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await server.kubectl(["apply", "--dry-run=server", "--validate=strict", "-f", "-"], { input });
}

let accepted: Promise<boolean> | undefined;

/** One process for all of them. If there is an error, each is applied alone, to find out whose it is. */
function allAreAccepted(): Promise<boolean> {
  accepted ??= apply(manifests.flatMap(({ objects }) => objects)).then(
    () => true,
    () => false,
  );
  return accepted;
}

describe("the operator normalizes", () => {
  for (const manifest of manifests) {
    for (const stack of stacksOf(manifest)) {
      test(`Stack ${stack.metadata.name} of ${manifest.where}`, () => {
        const outcome = normalizeStack(stack);
        if (!outcome.ok) throw new Error(describeProblems(outcome.problems));
        // Pages may show deprecated fields; examples must not.
        if (exampleManifests.includes(manifest)) expect(describeProblems(outcome.advice)).toBe("");
      });
    }
  }
});

describe("the chart accepts the values of", () => {
  for (const { where, text } of valuesBlocks) {
    test(where, async () => {
      const command = [
        toolPath("helm"),
        "template",
        "charts/pulumi-kubernetes-operator",
        "--kube-version=1.34",
        "--values",
        "-",
      ];
      const child = Bun.spawn(command, { cwd: root, stdin: new Blob([text]), stdout: "ignore", stderr: "pipe" });
      expect(await new Response(child.stderr).text()).toBe("");
      expect(await child.exited).toBe(0);
    });
  }
});

describe("an example has a README", () => {
  for (const folder of new Set(exampleManifests.map(({ where }) => where.split("/").slice(0, 2).join("/")))) {
    test(folder, () => expect(existsSync(join(root, folder, "README.md"))).toBe(true));
  }
});

const stacksOf = ({ objects }: Manifest): Manifest["objects"] => objects.filter(({ kind }) => kind === "Stack");
