/** An apply can contain any text, although the API server parses it as YAML, which restricts some characters. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";

import { programKind, updateKind, type Program, type Update } from "@pko/api";
import { builtin, resource } from "@pko/kube";
import { testNamespace, type TestNamespace } from "@pko/testkit";

import { apiServerWithApi } from "../api/install.ts";

setDefaultTimeout(180_000);

let space: TestNamespace;

beforeAll(async () => {
  space = await testNamespace({ server: await apiServerWithApi() });
});
afterAll(() => space.remove());

const fieldManager = "test";
/** All characters of the Basic Multilingual Plane. */
const characters = Array.from({ length: 0x1_00_00 }, (_, code) => String.fromCharCode(code)).filter((char) =>
  char.isWellFormed(),
);
const everything = `${characters.join("")}😀`;
const control = characters.filter((char) => /[\p{Cc}\u2028\u2029\ufeff\ufffe\uffff]/u.test(char));

test("every character is preserved in a ConfigMap and in an annotation", async () => {
  const metadata = { name: "every", namespace: space.name, annotations: { "example.com/text": everything } };
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { text: everything } };
  await space.client.apply(builtin.configMaps, body, { fieldManager });
  const kept = await space.client.get(builtin.configMaps, metadata);
  expect(kept.data?.["text"] === everything).toBe(true);
  expect(kept.metadata.annotations?.["example.com/text"] === everything).toBe(true);
});

test("control characters are preserved in a status and in keys", async () => {
  const { name: namespace, client } = space;
  const updates = resource<Update>(updateKind);
  const metadata = { name: "every", namespace };
  const { apiVersion, kind } = updateKind;
  const spec = { workspaceName: "web", stackName: "dev", type: "up" };
  await client.create(updates, { apiVersion, kind, metadata, spec });
  const message = `output: ${control.join("")}`;
  const status = { apiVersion, kind, metadata, status: { message } };
  await client.apply(updates, status, { fieldManager, subresource: "status" });
  expect((await client.get(updates, metadata)).status?.message).toBe(message);

  const programs = resource<Program>(programKind);
  const variables = Object.fromEntries(control.map((char) => [`key ${char}`, char]));
  const { apiVersion: version, kind: ofPrograms } = programKind;
  const program = { apiVersion: version, kind: ofPrograms, metadata, program: { variables } };
  await client.apply(programs, program, { fieldManager });
  expect((await client.get(programs, metadata)).program?.variables).toEqual(variables);
});

test("a lone surrogate becomes the replacement character", async () => {
  const metadata = { name: "lone-surrogate", namespace: space.name };
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { first: "a\ud83d", second: "\ude00b" } };
  await space.client.apply(builtin.configMaps, body, { fieldManager });
  const { data } = await space.client.get(builtin.configMaps, metadata);
  expect(data).toEqual({ first: "a\ufffd", second: "\ufffdb" });
});
