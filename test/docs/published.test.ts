/** The addresses of a release on the pages, and what Artifact Hub shows about the chart. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { kindDefinitions, normalizeStack, type Stack } from "@pko/api";
import { chartAddress, chartArguments, manifestUrl } from "@pko/install";
import { describe, expect, test } from "bun:test";
import { parse } from "yaml";

import { parseCommands } from "./commands.ts";
import { pages, root, type Page } from "./pages.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** The manifest of a clone also names the published image. */
const released = [chartAddress, "/releases/download/", "deploy/quickstart/install.yaml"];
const namesRelease = ({ blocks }: Page): boolean =>
  blocks.some(({ text }) => released.some((address) => text.includes(address)));
const installing = pages.filter(namesRelease);

interface KrewManifest {
  readonly spec: { readonly platforms: readonly { readonly uri: string }[] };
}

const { spec: plugin } = parse(read("deploy/krew/pulumi.yaml")) as KrewManifest;
const krewFile = "krew-pulumi.yaml";
const downloads = new Set([
  manifestUrl,
  manifestUrl.replace(/[^/]+$/, krewFile),
  ...plugin.platforms.map(({ uri }) => uri),
]);

test("every page that installs something names the published chart or manifest", () => {
  const paths = new Set(installing.map(({ path }) => path));
  const some = ["README.md", "docs/cli.md", "examples/install-from-pulumi/README.md"];
  expect(some.filter((path) => !paths.has(path))).toEqual([]);
  expect(installing.length).toBeGreaterThan(14);
  const commands = pages.flatMap(({ path, blocks }) =>
    blocks
      .filter(({ language }) => language === "sh")
      .flatMap(({ text }) => parseCommands(text))
      .map(({ words }) => ({ path, words })),
  );
  const local = commands.filter(({ words }) => words[0] === "helm" && words.some((word) => word.startsWith("charts/")));
  // It builds the image of a clone.
  expect(new Set(local.map(({ path }) => path))).toEqual(new Set(["docs/operations.md"]));
});

describe("the version that is installed is the current one, and there is a way until it is published:", () => {
  for (const { path, blocks, links } of installing) {
    test(path, () => {
      const text = blocks.map((block) => block.text).join("\n");
      const charts = [...text.matchAll(/oci:\/\/\S+( --version \S+)?/g)].map(([found]) => found);
      const urls = [...text.matchAll(/https:\S+\/releases\/download\/\S+/g)].map(([found]) => found);
      expect(charts.filter((chart) => chart !== chartArguments.join(" "))).toEqual([]);
      expect(urls.filter((url) => !downloads.has(url))).toEqual([]);
      expect(links.some((link) => link.endsWith("#install-from-a-clone"))).toBe(true);
    });
  }
});

test("the release workflow publishes to these addresses", () => {
  const { env } = parse(read(".github/workflows/release.yaml")) as { env: Readonly<Record<string, string>> };
  const [, owner = "", repository = ""] = /github\.com\/([^/]+)\/([^/]+)\//.exec(manifestUrl) ?? [];
  const charts = env["CHARTS"]?.replace("${{ github.repository_owner }}", owner);
  expect(`oci://${charts}/${repository}`).toBe(chartAddress);
});

test("a release contains the manifest for krew", () => {
  expect(read("hack/cluster/src/release.ts")).toContain(`"${krewFile}"`);
});

describe("on Artifact Hub", () => {
  const { annotations } = parse(read("charts/pulumi-kubernetes-operator/Chart.yaml")) as {
    readonly annotations: Readonly<Record<string, string>>;
  };
  const annotation = (name: string): unknown => parse(annotations[`artifacthub.io/${name}`] ?? "");

  test("the category and the capabilities are known ones", () => {
    // https://artifacthub.io/docs/topics/annotations/helm
    expect(["integration-delivery", "monitoring-logging", "security"]).toContain(annotation("category") as string);
    expect(["basic install", "seamless upgrades", "full lifecycle", "deep insights", "auto pilot"]).toContain(
      String(annotation("operatorCapabilities")).toLowerCase(),
    );
  });

  test("every kind is listed, with an example that the operator accepts", () => {
    const crds = annotation("crds") as { kind: string; version: string; name: string; description: string }[];
    expect(crds.map(({ name }) => name)).toEqual(kindDefinitions.map(({ plural, group }) => `${plural}.${group}`));
    expect(crds.filter(({ description }) => !description)).toEqual([]);
    const [stack] = annotation("crdsExamples") as Stack[];
    expect(stack && normalizeStack(stack).ok).toBe(true);
  });

  test("the screenshots are files of this repository", () => {
    const screenshots = annotation("screenshots") as { readonly url: string }[];
    const paths = screenshots.map(({ url }) => /\/v[\d.]+\/(.*)$/.exec(url)?.[1] ?? "");
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test("the metadata of the repository has known fields", () => {
    const metadata = parse(read("deploy/artifacthub/artifacthub-repo.yml")) as object;
    const known = new Set(["repositoryID", "owners", "ignore"]);
    expect(Object.keys(metadata).filter((field) => !known.has(field))).toEqual([]);
  });
});
