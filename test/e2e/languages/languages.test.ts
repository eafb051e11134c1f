/**
 * The same program in every language, from a Git server, with configuration, a secret and outputs: preview, up, a second
 * commit in the same pod, refresh, destroy.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import type { Condition } from "@pko/api";
import { buildTools, goBuildEnv, repositoryRoot, run } from "@pko/cluster";
import { updates } from "@pko/operator/kinds";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  deleteStack,
  fromSecret,
  isReady,
  newSecret,
  newStack,
  onFileBackend,
  podUid,
  readOutput,
  requestReconcile,
  stackUntil,
  untilEvents,
  useScene,
} from "../harness.ts";
import { publishPackagesImage } from "./image.ts";
import { publishJavaImage } from "./java-image.ts";

const slow = 480_000;
const examples = join(repositoryRoot, "examples/languages");
const canary = "canary-of-languages";

const scene = useScene("languages");
/** `JAVA=1` runs the example in Java instead of the others: its image takes minutes to build, and a run half a minute. */
const isJava = process.env["JAVA"] === "1";
let image: string;

beforeAll(async () => {
  if (isJava) await buildTools(["pulumi-language-java"]);
  image = isJava ? await publishJavaImage() : await publishPackagesImage();
  await applyTo(scene, newSecret("greeting", { password: canary }));
}, slow);

type Files = Readonly<Record<string, string | Buffer>>;

/** The files of an example in the folder `app`, as in a monorepo. */
function exampleFiles(language: string): Record<string, string> {
  const root = join(examples, language);
  const names = readdirSync(root, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile() && !entry.parentPath.includes("node_modules"));
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [`app${path.slice(root.length)}`, readFileSync(path, "utf8")];
    }),
  );
}

/** Compiled on this machine, which has the modules. */
async function compiledGo(greeting: string): Promise<Files> {
  const source = exampleFiles("go");
  const work = mkdtempSync(join(scene.folder, "go-"));
  for (const [path, text] of Object.entries(source)) {
    await Bun.write(join(work, path), text.replace("Hello", greeting));
  }
  const flags = ["-ldflags=-s -w", "-o", join(work, "greeting")];
  await run(["go", "build", ...flags, "."], { cwd: join(work, "app"), env: goBuildEnv });
  const project = "name: greeting\nruntime:\n  name: go\n  options:\n    binary: greeting\n";
  return { "app/Pulumi.yaml": project, "app/greeting": readFileSync(join(work, "greeting")) };
}

function interpreted(language: string): (greeting: string) => Promise<Files> {
  return async (greeting) =>
    Object.fromEntries(
      Object.entries(exampleFiles(language)).map(([path, text]) => [path, text.replace("Hello", greeting)]),
    );
}

type Languages = Readonly<Record<string, (greeting: string) => Promise<Files>>>;

const defaultLanguages: Languages = {
  yaml: interpreted("yaml"),
  typescript: interpreted("typescript"),
  python: interpreted("python"),
  go: compiledGo,
};
const languages: Languages = isJava ? { java: interpreted("java") } : defaultLanguages;

function exampleStack(language: string, more: object): object {
  return newStack(language, {
    workspaceTemplate: { spec: { ...onFileBackend.workspaceTemplate.spec, image } },
    ...scene.git.source(language),
    repoDir: "app",
    config: { who: "world", times: 3 },
    secretsRef: { password: fromSecret("greeting", "password") },
    destroyOnFinalize: true,
    ...more,
  });
}

/** Runs a refresh and returns the Complete condition of its Update. */
async function refresh(language: string): Promise<Condition> {
  const { client, namespace } = scene;
  const name = `${language}-refresh`;
  await applyTo(scene, {
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Update",
    metadata: { name },
    spec: { workspaceName: language, stackName: language, type: "refresh" },
  });
  return await waitFor(
    async () => {
      const { status } = await client.get(updates, { name, namespace });
      return status?.endTime !== undefined && status.conditions?.find(({ type }) => type === "Complete");
    },
    { timeoutMs: 120_000, what: `the refresh of ${language} to end` },
  );
}

describe("the example deploys, follows a commit, refreshes and destroys in", () => {
  for (const [language, files] of Object.entries(languages)) {
    test.concurrent(
      language,
      async () => {
        const repository = scene.git.create(language);
        repository.commit(await files("Hello"));
        await applyTo(scene, exampleStack(language, { preview: true }));
        const previewed = await stackUntil(scene, language, isReady);
        expect(previewed.status?.lastUpdate).toMatchObject({ type: "preview", changes: { create: 2 } });
        const pod = await podUid(scene, language);

        await applyTo(scene, exampleStack(language, { preview: false }));
        const deployed = await stackUntil(scene, language, isReady);
        expect(deployed.status?.lastUpdate).toMatchObject({ type: "up", changes: { create: 2 } });
        expect(deployed.status?.outputs).toEqual({ greeting: "Hello, world!", times: 3, password: "[secret]" });
        expect(await readOutput(scene, language, "password")).toBe(canary);

        const second = repository.commit(await files("Goodbye"));
        await requestReconcile(scene, language, "second");
        const followed = await stackUntil(
          scene,
          language,
          ({ status }) => status?.lastUpdate?.lastSuccessfulCommit === second,
        );
        expect(followed.status?.outputs).toMatchObject({ greeting: "Goodbye, world!" });
        expect(await refresh(language)).toMatchObject({ status: "True", message: "The refresh succeeded." });
        expect(await podUid(scene, language)).toBe(pod);

        await deleteStack(scene, language);
        await untilEvents(scene, language, "StackDestroyed");
      },
      slow,
    );
  }
});
