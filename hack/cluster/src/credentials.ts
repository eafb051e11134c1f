/** The cluster's CA, and a certificate and kubeconfig for each of its programs. */
import { generateKeyPairSync } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { Layout } from "./layout.ts";
import { network } from "./network.ts";
import { allNodes } from "./nodes.ts";
import { createCa, type Authority, type KeyPair } from "./pki.ts";

/** The identities of the programs for RBAC and the Node authorizer, by the name of their kubeconfig. */
const identities = {
  admin: { commonName: "admin", organization: "system:masters" },
  "kube-controller-manager": { commonName: "system:kube-controller-manager" },
  "kube-scheduler": { commonName: "system:kube-scheduler" },
  "kube-proxy": { commonName: "system:kube-proxy" },
  ...Object.fromEntries(
    allNodes.map(({ name, suffix }) => [
      `kubelet${suffix}`,
      { commonName: `system:node:${name}`, organization: "system:nodes" },
    ]),
  ),
};

export async function writeCredentials(layout: Layout): Promise<void> {
  await mkdir(layout.pki, { recursive: true, mode: 0o700 });
  await mkdir(layout.kubeconfigs, { recursive: true, mode: 0o700 });
  const authority = await createCa("local-cluster");
  await writePair(layout, "ca", authority);
  await writePair(layout, "apiserver", await authority.issue(apiServerSubject));
  await writePair(layout, "kubelet-client", await authority.issue(identities.admin));
  await writeServiceAccountKeys(layout);
  for (const [name, identity] of Object.entries(identities)) {
    await writePrivate(
      join(layout.kubeconfigs, `${name}.yaml`),
      kubeconfig(authority, await authority.issue(identity)),
    );
  }
}

const apiServerSubject = {
  commonName: "kube-apiserver",
  dns: [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
  ],
  ips: [network.node, network.apiService, "127.0.0.1"],
};

/** RSA, because RS256 is the only algorithm that every OIDC relying party supports. */
async function writeServiceAccountKeys(layout: Layout): Promise<void> {
  const keys = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  await writePrivate(join(layout.pki, "sa.key"), keys.privateKey);
  await writePrivate(join(layout.pki, "sa.pub"), keys.publicKey);
}

function kubeconfig(authority: Pick<Authority, "cert">, client: KeyPair): string {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const document = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "local",
    clusters: [
      {
        name: "local",
        cluster: { server: network.apiServerUrl, "certificate-authority-data": base64(authority.cert) },
      },
    ],
    users: [
      {
        name: "local",
        user: { "client-certificate-data": base64(client.cert), "client-key-data": base64(client.key) },
      },
    ],
    contexts: [{ name: "local", context: { cluster: "local", user: "local" } }],
  };
  return JSON.stringify(document, undefined, 2);
}

async function writePair(layout: Layout, name: string, pair: KeyPair): Promise<void> {
  await writePrivate(join(layout.pki, `${name}.crt`), pair.cert);
  await writePrivate(join(layout.pki, `${name}.key`), pair.key);
}

async function writePrivate(path: string, content: string): Promise<void> {
  await writeFile(path, content, { mode: 0o600 });
}
