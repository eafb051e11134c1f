/** A Program with every section of Pulumi YAML: stored unchanged by the API server, and run by a real agent. */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { programKind } from "@pko/api";
import { projectYaml } from "@pko/operator";
import { stringify } from "yaml";

import { component, everySection, stash } from "../../programs/every-section.ts";
import { apiServerWithApi, testTimeoutMs, programs } from "./install.ts";
import { program, TestWorkspace } from "../agent/harness.ts";

test(
  "runs packages, configuration of every type, variables, functions, options, references and outputs",
  async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ name: "base", outputs: { text: "from the base", secret: { "fn::secret": "hush" } } }), {
      name: "base",
    });
    expect(await web.run("base", { kind: "up" })).toMatchObject({ outcome: "succeeded" });

    const folder = join(web.root, "greeting");
    mkdirSync(folder);
    writeFileSync(join(folder, "PulumiPlugin.yaml"), "runtime: yaml\n");
    writeFileSync(join(folder, "Pulumi.yaml"), stringify(component));
    const locked = stash("precious", { protect: "${verbose}", retainOnDelete: true });
    const sections = everySection({ folder, note: 1, extra: { locked } });
    const { client } = await apiServerWithApi();
    const metadata = { name: "sections", namespace: "default" };
    const sent = { apiVersion: programKind.apiVersion, kind: programKind.kind, metadata, program: sections };
    const kept = await client.create(programs, sent, { fieldValidation: "Strict" });
    expect(kept.program).toEqual(sections);

    const source = { kind: "files" as const, files: { "Pulumi.yaml": projectYaml(kept) } };
    const config = [
      { key: "region", value: { from: "value" as const, value: "east" } },
      { key: "size", value: { from: "value" as const, value: 7 } },
      { key: "password", value: { from: "value" as const, value: "pass" }, secret: true },
    ];
    await web.prepare(source, { name: "sections", config });
    expect(await web.run("sections", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    const outputs = await web.outputs("sections");
    expect(Object.fromEntries(outputs.map(({ name, value }) => [name, value]))).toEqual({
      joined: "a-b",
      decoded: "b",
      json: '{"replicas":3,"size":7}',
      hidden: "pass",
      password: "pass",
      referenced: "from the base",
      secretly: "hush",
      component: "hello east",
      where: "sections/sections",
    });
    const secrets = outputs.filter(({ secret }) => secret).map(({ name }) => name);
    expect(secrets.toSorted()).toEqual(["hidden", "password", "secretly"]);
  },
  testTimeoutMs * 2,
);
