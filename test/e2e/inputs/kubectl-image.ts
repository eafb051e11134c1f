/** An image with `kubectl`, for an init container that copies it to the program's volume. */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { layout, publishImage, stateRoot, toolPath } from "@pko/cluster";

export async function publishKubectl(): Promise<string> {
  const context = mkdtempSync(join(tmpdir(), "pko-kubectl-image-"));
  try {
    copyFileSync(toolPath("kubectl"), join(context, "kubectl"));
    const containerfile = join(context, "Containerfile");
    const lines = ["FROM docker.io/library/busybox:latest", "COPY --chmod=755 kubectl /tools/"];
    writeFileSync(containerfile, `${lines.join("\n")}\n`);
    const name = "docker.io/library/kubectl:test";
    await publishImage({ name, containerfile, context }, layout(stateRoot).images);
    return name;
  } finally {
    rmSync(context, { recursive: true });
  }
}
