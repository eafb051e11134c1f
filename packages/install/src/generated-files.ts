/** Every file that is generated, from the schemas or from other files: path from the repository's root → content. */
import { crdOf, kindDefinitions } from "@pko/api";
import { format } from "prettier";
import { Document, isScalar, visit } from "yaml";

import { argoCdSettings } from "./argo-cd.ts";
import { chartFacts, chartFolder, chartMetadata, chartReadme, valuesSchema, valuesYaml } from "./chart/files.ts";
import { dashboard } from "./dashboard.ts";
import { quickstartObjects } from "./quickstart.ts";
import { referencePage } from "./reference-page.ts";

const note = "Generated from packages/api by `bun packages/api/generate.ts`; do not edit.";

export async function generatedFiles(): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const definition of kindDefinitions) {
    const { group, plural, kind } = definition;
    files.set(`deploy/crds/${group}_${plural}.yaml`, yamlFile([crdOf(definition)]));
    files.set(`docs/api/${kind.toLowerCase()}.md`, await markdownFile(referencePage(definition)));
    files.set(`${chartFolder}/crds/${group}_${plural}.yaml`, yamlFile([crdOf(definition)]));
  }
  files.set(`${chartFolder}/Chart.yaml`, yamlFile([chartMetadata]));
  files.set(`${chartFolder}/facts.yaml`, yamlFile([chartFacts]));
  files.set(`${chartFolder}/values.yaml`, `# ${note}\n${valuesYaml()}`);
  files.set(`${chartFolder}/values.schema.json`, await jsonFile(valuesSchema()));
  files.set(`${chartFolder}/dashboard.json`, await jsonFile(dashboard()));
  files.set(`${chartFolder}/README.md`, await markdownFile(chartReadme()));
  files.set("deploy/quickstart/install.yaml", yamlFile(quickstartObjects()));
  files.set("deploy/argocd/argocd-cm.yaml", yamlFile([await argoCdSettings()]));
  return files;
}

function yamlFile(objects: readonly object[]): string {
  return `# ${note}\n${objects.map(yamlDocument).join("---\n")}`;
}

/** Short collections of texts and numbers stand on one line: the file is half as long, and easier to read. */
function yamlDocument(object: object): string {
  const document = new Document(object, { aliasDuplicateObjects: false });
  visit(document, {
    Map: (_, map) => void (map.flow = fitsOneLine(map.items.map(({ value }) => value))),
    Seq: (_, list) => void (list.flow = fitsOneLine(list.items)),
  });
  return document.toString({ indent: 1, lineWidth: 0 });
}

/** Parsers differ in what a text within brackets may be unless it is quoted: those with signs stay out of them. */
function fitsOneLine(items: readonly unknown[]): boolean {
  const texts = items.map((item) => (isScalar(item) ? String(item.value) : undefined));
  return texts.every((text) => text !== undefined && /^[\w ./:;,'-]*$/.test(text)) && texts.join("").length <= 160;
}

async function jsonFile(value: object): Promise<string> {
  return await format(JSON.stringify(value), { parser: "json", printWidth: 120 });
}

async function markdownFile(page: string): Promise<string> {
  return await format(`<!-- ${note} -->\n\n${page}\n`, { parser: "markdown", printWidth: 120 });
}
