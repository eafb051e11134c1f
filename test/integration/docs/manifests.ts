/** The manifests of the docs: the files of the examples and the YAML blocks of the pages. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

import { parseAllDocuments } from "yaml";

import { files, pages, root } from "../../docs/pages.ts";

export interface Manifest {
  /** The file, and the block in it. */
  readonly where: string;
  readonly objects: readonly ManifestObject[];
  /** Why the text cannot be parsed. */
  readonly problem?: string;
}

interface ManifestObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** Files of tools other than kubectl. */
const otherFiles = /^(Pulumi(\..*)?|values|kustomization)\.yaml$/;

export const exampleManifests: readonly Manifest[] = files
  .filter((path) => path.startsWith("examples/") && /\.ya?ml$/.test(path) && !otherFiles.test(basename(path)))
  .map((path) => {
    // The files that `make demo` applies are patches of the example's Stack.
    const read = path.includes("/change/") ? completed : asObject;
    return manifest({ where: path, text: readFileSync(join(root, path), "utf8") }, read);
  });

interface Fragment {
  readonly where: string;
  readonly text: string;
}

const yamlBlocks: readonly Fragment[] = pages.flatMap(({ path, blocks }) =>
  blocks
    .filter(({ language }) => language === "yaml")
    .map(({ text }, index) => ({ where: `${path}, YAML block ${index + 1}`, text })),
);

/** Helm values start with this line. */
const valuesMark = "# values.yaml\n";

export const valuesBlocks = yamlBlocks.filter(({ text }) => text.startsWith(valuesMark));

export const pageManifests: readonly Manifest[] = yamlBlocks
  .filter(({ text }) => !text.startsWith(valuesMark) && !isProject(text))
  .map((fragment) => manifest(fragment, completed));

function manifest({ where, text }: Fragment, read: (value: unknown) => ManifestObject): Manifest {
  try {
    return { where, objects: parsed(text).map(read) };
  } catch (error) {
    return { where, objects: [], problem: String(error) };
  }
}

/** Whether the text is a part of a Pulumi.yaml, which is not a manifest. */
function isProject(text: string): boolean {
  return /^runtime:/m.test(text) && !/^apiVersion:/m.test(text);
}

function parsed(text: string): unknown[] {
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error) throw error;
    return document.toJS() as unknown;
  });
}

/** Adds the required fields if a page shows only a part of a Stack. */
function completed(value: unknown): ManifestObject {
  const { apiVersion, metadata, spec, ...others } = value as Record<string, unknown>;
  if (apiVersion !== undefined) return asObject(value);
  if (Object.keys(others).length > 0) throw new Error(`neither an object nor a part of one: ${JSON.stringify(value)}`);
  const given = (spec ?? {}) as Record<string, unknown>;
  const sources = ["projectRepo", "fluxSource", "programRef"];
  const template = given["workspaceTemplate"] as { spec?: { local?: object } } | undefined;
  const hasSource = sources.some((field) => field in given) || template?.spec?.local !== undefined;
  const isRevision = ["branch", "tag", "commit", "gitAuth", "repoDir"].some((field) => field in given);
  const source = isRevision ? { projectRepo: "https://github.com/my-org/my-app" } : { programRef: { name: "part" } };
  const needsBranch = isRevision && !["branch", "tag", "commit"].some((field) => field in given);
  return asObject({
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name: "part", ...(metadata as object | undefined) },
    spec: { stack: "dev", ...(!hasSource && source), ...(needsBranch && { branch: "main" }), ...given },
  });
}

function asObject(value: unknown): ManifestObject {
  const { apiVersion, kind, metadata } = value as Partial<ManifestObject>;
  if (!apiVersion || !kind || !metadata) throw new Error(`not an object: ${JSON.stringify(value)}`);
  return value as ManifestObject;
}
