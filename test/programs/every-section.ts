/** A program with every section of Pulumi YAML, and every function and resource option that needs no plugin. */
import type { ProgramSpec } from "@pko/api";

type Resource = NonNullable<ProgramSpec["resources"]>[string];

export const stash = (input: unknown, options: object = {}): Resource =>
  ({ type: "pulumi:index:Stash", properties: { input }, options }) as Resource;

/** A package of components, which is a folder: it needs no download. */
export const component = {
  name: "greeting",
  runtime: "yaml",
  components: {
    greeter: {
      inputs: { who: { type: "string" } },
      resources: { said: stash("hello ${who}") },
      outputs: { text: "${said.output}" },
    },
  },
};

interface SectionOptions {
  /** The folder of the package. */
  readonly folder: string;
  /** A property whose changes are ignored. */
  readonly note: number;
  /** Resources besides. */
  readonly extra?: Readonly<Record<string, Resource>>;
}

/** Refers to a stack `base` of a project of that name, with outputs `text` and `secret`. */
export const everySection = ({ folder, note, extra = {} }: SectionOptions): ProgramSpec => ({
  description: "Every section of the language.",
  pulumi: { requiredVersion: ">=3.100.0" },
  config: { region: { type: "string", default: "west" }, size: { type: "integer" } },
  configuration: {
    replicas: { type: "Number", default: 3 },
    verbose: { type: "boolean", default: true },
    zones: { type: "List<String>", default: ["a", "b"] },
    password: { type: "String", secret: true },
  },
  packages: { greeting: folder },
  variables: {
    joined: { "fn::join": ["-", "${zones}"] },
    parts: { "fn::split": ["-", "${joined}"] },
    chosen: { "fn::select": [1, "${parts}"] },
    encoded: { "fn::toBase64": "${chosen}" },
    decoded: { "fn::fromBase64": "${encoded}" },
    json: { "fn::toJSON": { replicas: "${replicas}", size: "${size}" } },
    hidden: { "fn::secret": "${password}" },
    site: { "fn::assetArchive": { "index.html": { "fn::stringAsset": "hello" }, all: { "fn::fileArchive": "." } } },
  },
  resources: {
    base: { type: "pulumi:pulumi:StackReference", properties: { name: "organization/base/base" } },
    noted: stash({ note, text: "kept" }, { ignoreChanges: ["input.note"] }),
    page: { type: "pulumi:index:Stash", properties: { input: "${site}" }, options: { dependsOn: ["${noted}"] } },
    file: stash({ "fn::fileAsset": "./Pulumi.yaml" }),
    greeter: { type: "greeting:index:greeter", properties: { who: "${region}" } },
    ...extra,
  },
  outputs: {
    joined: "${joined}",
    decoded: "${decoded}",
    json: "${json}",
    hidden: "${hidden}",
    password: "${password}",
    referenced: '${base.outputs["text"]}',
    secretly: '${base.outputs["secret"]}',
    component: "${greeter.text}",
    where: "${pulumi.project}/${pulumi.stack}",
  },
});
