/** Every manifest of the docs that define the product is accepted, stored unchanged and normalized as expected. */
import { describeProblems, normalizeStack } from "@pko/api";
import type { Program, Stack } from "@pko/api";
import { testNamespace, type ApiServer } from "@pko/testkit";
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { documentMeanings } from "./document-meanings.ts";
import { documentFiles, documentNamespaces, type DocumentObject } from "./documents.ts";
import { apiServerWithApi, testTimeoutMs, programs, stacks } from "./install.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;

beforeAll(async () => {
  server = await apiServerWithApi();
  const namespaces = documentNamespaces.map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } }));
  const list = { apiVersion: "v1", kind: "List", items: namespaces };
  await server.kubectl(["apply", "--filename", "-"], { input: JSON.stringify(list) });
}, testTimeoutMs);

test("there are 24 files", () => expect(documentFiles).toHaveLength(24));

describe("kubectl apply --dry-run=server --validate=strict accepts", () => {
  for (const { name, path } of documentFiles) {
    test(name, async () => {
      if (!(await allAreAccepted())) await apply(path);
    });
  }
});

async function apply(...paths: readonly string[]): Promise<void> {
  const files = paths.flatMap((path) => ["--filename", path]);
  await server.kubectl(["apply", "--dry-run=server", "--validate=strict", ...files]);
}

let accepted: Promise<boolean> | undefined;

/** One process for all of them. If there is an error, each is applied alone, to find out whose it is. */
function allAreAccepted(): Promise<boolean> {
  accepted ??= apply(...documentFiles.map(({ path }) => path)).then(
    () => true,
    () => false,
  );
  return accepted;
}

describe("the API server stores unchanged", () => {
  for (const { name, objects } of documentFiles) {
    for (const object of objects.filter(({ apiVersion }) => apiVersion === "pulumi.com/v1")) {
      test(`${object.kind} ${object.metadata.name} of ${name}`, async () => {
        await using namespace = await testNamespace();
        const { kind, metadata, ...content } = object;
        const placed = { ...object, metadata: { ...metadata, namespace: namespace.name } };
        const stored = kind === "Stack" ? await storeStack(placed) : await storeProgram(placed);
        expect({ ...stored, metadata: undefined, kind: undefined }).toEqual({
          ...content,
          metadata: undefined,
          kind: undefined,
        });
        expect(stored.metadata.annotations).toEqual(metadata.annotations);
      });
    }
  }
});

const strictly = { fieldValidation: "Strict" } as const;

async function storeStack(object: DocumentObject): Promise<Stack> {
  await server.client.create(stacks, object as unknown as Stack, strictly);
  return await server.client.get(stacks, object.metadata);
}

async function storeProgram(object: DocumentObject): Promise<Program> {
  await server.client.create(programs, object, strictly);
  return await server.client.get(programs, object.metadata);
}

describe("the operator normalizes", () => {
  for (const { name, objects } of documentFiles) {
    for (const object of objects.filter(({ kind }) => kind === "Stack")) {
      test(`Stack ${object.metadata.name} of ${name}`, () => {
        const outcome = normalizeStack(object);
        const meaning = documentMeanings[name]?.[object.metadata.name];
        if (!outcome.ok) throw new Error(describeProblems(outcome.problems));
        if (!meaning) throw new Error("document-meanings.ts has no entry for it");
        expect(outcome.value).toMatchObject(meaning);
      });
    }
  }
});
