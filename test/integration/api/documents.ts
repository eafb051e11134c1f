/** The objects in the manifests of the docs. */
import { readdirSync, readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";

import { pathTo } from "./install.ts";

export interface DocumentObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Record<string, string>;
  };
  readonly [field: string]: unknown;
}

interface DocumentFile {
  readonly name: string;
  readonly path: string;
  readonly objects: readonly DocumentObject[];
}

const folder = "fixtures/manifests";

export const documentFiles: readonly DocumentFile[] = readdirSync(pathTo(folder))
  .toSorted()
  .map((name) => {
    const path = pathTo(`${folder}/${name}`);
    const objects = parseAllDocuments(readFileSync(path, "utf8")).map((document) => document.toJS() as DocumentObject);
    return { name, path, objects };
  });

/** The namespaces of the manifests. */
export const documentNamespaces: readonly string[] = [
  ...new Set(documentFiles.flatMap(({ objects }) => objects.flatMap(({ metadata }) => metadata.namespace ?? []))),
];
