/**
 * An image in which the Java example runs offline. Maven fills its repository on this machine, from the registry that it is
 * configured for.
 */
import { cpSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { attempt, repositoryRoot, toolPath } from "@pko/cluster";

import { publishOfflineImage } from "./offline-image.ts";

const example = join(repositoryRoot, "examples/languages/java");
const host = "pulumi-language-java";

export const publishJavaImage = async (): Promise<string> =>
  await publishOfflineImage({
    label: "java",
    containerfile: join(repositoryRoot, "deploy/images/java.Containerfile"),
    inputs: [join(example, "pom.xml")],
    version: toolPath(host),
    what: "Java packages",
    fill,
  });

async function fill(draft: string): Promise<void> {
  const project = join(draft, "project");
  cpSync(toolPath(host), join(draft, "bin", host));
  cpSync(example, project, { recursive: true });
  // It fails, because nothing but Pulumi can run the program, after it has downloaded what it needs to run it.
  const goals = ["--quiet", "--batch-mode", `-Dmaven.repo.local=${join(draft, "m2")}`, "compile", "exec:java"];
  const { stdout, stderr } = await attempt(["mvn", ...goals], { cwd: project });
  if (!existsSync(join(draft, "m2/com/pulumi/pulumi"))) throw new Error(`Maven failed:\n${stderr}${stdout}`);
  rmSync(project, { recursive: true });
  writeFileSync(
    join(draft, "settings.xml"),
    "<settings><localRepository>/packages/m2</localRepository><offline>true</offline></settings>\n",
  );
}
