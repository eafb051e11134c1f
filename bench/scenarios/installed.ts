/** The installation: its size, and whether and how fast `kubectl apply` accepts it. Nothing is changed. */
import { readFile } from "node:fs/promises";

import { resource, type KubeObject } from "@pko/kube";
import { parseAllDocuments } from "yaml";

import type { Bed } from "../bed/bed.ts";
import { figure, type Findings } from "../report/figures.ts";
import type { Scenario } from "./scenario.ts";

const crds = resource<KubeObject & { readonly spec: { readonly group: string } }>({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
});

/** `kubectl apply` stores a copy of the object in an annotation, which may not be larger. */
const maxAnnotationKb = 256;

export const installed: Scenario = {
  name: "installed",
  title: "the installation",
  async run({ bed, options }) {
    const { items } = await bed.client.list(crds);
    const ours = items.filter(({ spec }) => spec.group === "pulumi.com" || spec.group === "auto.pulumi.com");
    const sizes = ours.map(({ spec, metadata }) => sizeKb({ metadata: { name: metadata.name }, spec }));
    const note = `kubectl apply accepts objects up to ${maxAnnotationKb} KB`;
    const manifest = options.manifest === undefined ? { figures: [] } : await measureManifest(bed, options.manifest);
    return {
      figures: [
        ...figure({ id: "crds.kb", title: "CRDs in the cluster", unit: "KB" }, [
          sizes.reduce((total, size) => total + size, 0),
        ]),
        ...figure({ id: "crds.largest", title: "largest CRD", unit: "KB", note }, [Math.max(...sizes)]),
        ...manifest.figures,
      ],
      skipped: manifest.skipped ?? [],
    };
  },
};

const sizeKb = (object: object): number => Buffer.byteLength(JSON.stringify(object)) / 1024;

async function measureManifest(bed: Bed, file: string): Promise<Findings> {
  const text = await readFile(file, "utf8");
  const objects = parseAllDocuments(text).map((document) => document.toJS() as object | null);
  const largest = Math.max(...objects.map((object) => sizeKb(object ?? {})));
  const sizes = [
    ...figure({ id: "manifest.kb", title: "install manifest", unit: "KB" }, [Buffer.byteLength(text) / 1024]),
    ...figure({ id: "manifest.largest", title: "largest object of the manifest", unit: "KB" }, [largest]),
  ];
  const title = "kubectl apply --dry-run=server of the manifest";
  const begin = performance.now();
  try {
    await bed.kubectl(["apply", "--dry-run=server", "-f", file]);
    return { figures: [...sizes, ...figure({ id: "manifest.apply", title, unit: "ms" }, [performance.now() - begin])] };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { figures: sizes, skipped: [{ title, reason }] };
  }
}
