/** The service account credentials that Kubernetes mounts into a pod. */
import { join } from "node:path";

import type { Clock } from "../../clock.ts";
import { fileText, type Credentials } from "./credentials.ts";

interface InClusterOptions {
  /** Where the service account is mounted. */
  readonly folder?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly clock?: Clock;
}

const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

export async function inClusterCredentials(options: InClusterOptions = {}): Promise<Credentials> {
  const { folder = serviceAccountFolder, environment = process.env } = options;
  const host = environment["KUBERNETES_SERVICE_HOST"];
  const port = environment["KUBERNETES_SERVICE_PORT"];
  if (!host || !port) throw new Error("not in a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set");
  const read = (name: string) => fileText(join(folder, name), options.clock);
  const [token, ca] = [read("token"), read("ca.crt")];
  const namespace = (await read("namespace")()).trim();
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    namespace,
    access: async (refresh) => ({ token: (await token(refresh)).trim(), tls: { ca: await ca(refresh) } }),
  };
}
