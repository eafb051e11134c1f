/** An image whose CLI reports an old version. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { layout, publishImage, stateRoot } from "@pko/cluster";

export const oldVersion = "3.100.0";

export async function publishOldPulumi(): Promise<string> {
  const context = mkdtempSync(join(tmpdir(), "pko-old-"));
  const script = `#!/bin/sh\ncase "$*" in *version) echo v${oldVersion} ;; *) exec /pulumi/bin/pulumi "$@" ;; esac\n`;
  writeFileSync(join(context, "pulumi"), script);
  const containerfile = join(context, "Containerfile");
  const lines = [
    "FROM docker.io/pulumi/pulumi:latest-nonroot",
    "COPY --chmod=755 pulumi /old/pulumi",
    "ENV PATH=/old:/pulumi/bin:/usr/local/bin:/usr/bin:/bin",
  ];
  writeFileSync(containerfile, `${lines.join("\n")}\n`);
  const name = `docker.io/pulumi/pulumi:${oldVersion}-test`;
  await publishImage({ name, containerfile, context }, layout(stateRoot).images);
  return name;
}
