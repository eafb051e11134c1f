/** Every file that is generated from the schemas: path from the repository's root → content. */
import { format } from "prettier";
import { stringify } from "yaml";

import { kindDefinitions } from "./crd/all.ts";
import { crdOf } from "./crd/definition.ts";
import { referencePage } from "./docs/reference.ts";
import { quickstartObjects } from "./install/quickstart.ts";

const note = "Generated from packages/api by `bun packages/api/generate.ts`; do not edit.";

export async function generatedFiles(): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const definition of kindDefinitions) {
    const { group, plural, kind } = definition;
    files.set(`deploy/crds/${group}_${plural}.yaml`, await yamlFile([crdOf(definition)]));
    files.set(`docs/api/${kind.toLowerCase()}.md`, await markdownFile(referencePage(definition)));
  }
  files.set("deploy/quickstart/install.yaml", await yamlFile(quickstartObjects()));
  return files;
}

async function yamlFile(objects: readonly object[]): Promise<string> {
  const documents = objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false }));
  return await format(`# ${note}\n${documents.join("---\n")}`, { parser: "yaml", printWidth: 120 });
}

async function markdownFile(page: string): Promise<string> {
  return await format(`<!-- ${note} -->\n\n${page}\n`, { parser: "markdown", printWidth: 120 });
}
