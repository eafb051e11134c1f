/** A plugin server on the cluster, with the provider for Kubernetes. Its log shows the downloads. */
import { mkdtempSync } from "node:fs";
import { dirname, join } from "node:path";

import { layout, providerVersion, publishImage, repositoryRoot, run, stateRoot, toolPath } from "@pko/cluster";

import { applyTo, at, kubectl, type Place } from "../harness.ts";

export interface PluginServer {
  /** For the option `pluginDownloadURL`. */
  readonly url: string;
  /** The paths of all downloads so far. */
  downloads(): Promise<string[]>;
}

const image = "docker.io/library/plugins:test";
const name = "plugins";
const port = 8080;

/** `folder` takes the files of the image. */
export async function servePlugins(place: Place, folder: string): Promise<PluginServer> {
  await publishPlugins(folder);
  const labels = { app: name };
  await applyTo(
    place,
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, labels },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name, image, readinessProbe: { tcpSocket: { port }, periodSeconds: 1 } }],
      },
    },
    { apiVersion: "v1", kind: "Service", metadata: { name }, spec: { selector: labels, ports: [{ port }] } },
  );
  await kubectl(["wait", `pod/${name}`, ...at(place), "--for=condition=Ready", "--timeout=120s"]);
  return {
    url: `http://${name}.${place.namespace}.svc:${port}`,
    async downloads() {
      const log = await kubectl(["logs", name, ...at(place)]);
      return Array.from(log.matchAll(/"GET (\S+) HTTP\/[\d.]+" 200/g), ([, path = ""]) => path);
    },
  };
}

async function publishPlugins(folder: string): Promise<void> {
  const context = mkdtempSync(join(folder, "plugins-"));
  const architecture = process.arch === "x64" ? "amd64" : "arm64";
  const archive = join(context, `pulumi-resource-kubernetes-v${providerVersion}-linux-${architecture}.tar.gz`);
  const plugin = dirname(toolPath("pulumi-resource-kubernetes"));
  // The fastest level: the archive is transferred only within this machine.
  await run(["tar", "-C", plugin, "--use-compress-program=gzip -1", "-cf", archive, "pulumi-resource-kubernetes"]);
  const containerfile = join(repositoryRoot, "test/e2e/classes/plugin-server/Containerfile");
  await publishImage({ name: image, containerfile, context }, layout(stateRoot).images);
}
