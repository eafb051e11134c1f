/** The workspace image runs Pulumi programs on the cluster: YAML, and TypeScript with a dynamic resource. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { waitFor } from "@pko/testkit";

import { kubectl } from "../harness.ts";

const pod = "workspace-image";

const yamlProgram = `
name: greeting
runtime: yaml
resources:
  greeting:
    type: pulumi:index:Stash
    properties:
      input: hello
outputs:
  greeting: \${greeting.output}
`;

const typescriptProgram = `
import * as pulumi from "@pulumi/pulumi";

const provider: pulumi.dynamic.ResourceProvider = {
  create: async (inputs) => ({ id: "the-answer", outs: { value: inputs.value * 2 } }),
};

class Doubled extends pulumi.dynamic.Resource {
  public readonly value!: pulumi.Output<number>;
  constructor(name: string, props: { value: number }) {
    super(provider, name, props);
  }
}

export const answer = new Doubled("answer", { value: 21 }).value;
`;

describe("a pod of the workspace image", () => {
  beforeAll(async () => {
    await kubectl(["apply", "-f", "-"], { input: JSON.stringify(manifests) });
    await kubectl(["wait", "--for=condition=Ready", `pod/${pod}`, "--timeout=180s"]);
  }, 300_000);

  afterAll(async () => {
    await kubectl(["delete", "-f", "-", "--wait=false", "--grace-period=0", "--force"], {
      input: JSON.stringify(manifests),
    });
  });

  test("runs the Pulumi CLI as user 1000, and has a readable log", async () => {
    await waitFor(async () => /^v3\.\d+\.\d+\n1000\n/.test(await kubectl(["logs", pod])), {
      what: "the version and the user in the pod's log",
    });
  });

  test("reaches the API server by the name of its Service", async () => {
    const token = "$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)";
    const ca = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
    const response = await shell(
      `curl -sS --cacert ${ca} -H "Authorization: Bearer ${token}" https://kubernetes.default.svc/version`,
    );
    expect(JSON.parse(response)).toMatchObject({ major: "1" });
  });

  test("gets a token for the requested audience, from an issuer with OIDC discovery", async () => {
    const token = await shell("cat /tokens/token");
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Record<
      string,
      unknown
    >;
    expect(claims).toMatchObject({ aud: ["urn:pulumi:org:example"] });
    const discovery = await shell(`curl -sS --insecure ${String(claims["iss"])}/.well-known/openid-configuration`);
    expect(JSON.parse(discovery)).toMatchObject({
      issuer: claims["iss"],
      jwks_uri: `${String(claims["iss"])}/openid/v1/jwks`,
    });
  });

  test("writes to a ReadWriteMany claim of the default storage class", async () => {
    expect(await shell("echo kept > /data/file && cat /data/file")).toBe("kept\n");
    const claim = await kubectl(["get", "pvc", pod, "--output=jsonpath={.status.phase} {.status.accessModes[0]}"]);
    expect(claim).toBe("Bound ReadWriteMany");
  });

  test("runs a YAML program on a file backend", async () => {
    await write("/tmp/greeting/Pulumi.yaml", yamlProgram);
    expect(await up("/tmp/greeting")).toEqual({ greeting: "hello" });
  });

  test("runs a TypeScript program with a dynamic resource", async () => {
    await write("/tmp/answer/Pulumi.yaml", "name: answer\nruntime: nodejs\n");
    await write("/tmp/answer/package.json", '{ "name": "answer", "main": "index.ts" }');
    await write("/tmp/answer/index.ts", typescriptProgram);
    expect(await up("/tmp/answer")).toEqual({ answer: 42 });
  });
});

async function up(folder: string): Promise<unknown> {
  const env = "export HOME=/tmp PULUMI_BACKEND_URL=file:///tmp PULUMI_CONFIG_PASSPHRASE=passphrase";
  await shell(`${env}; cd ${folder} && pulumi stack init dev && pulumi up --yes --skip-preview`);
  return JSON.parse(await shell(`${env}; cd ${folder} && pulumi stack output --json`));
}

async function shell(script: string): Promise<string> {
  return await kubectl(["exec", pod, "--", "bash", "-c", script]);
}

async function write(path: string, content: string): Promise<void> {
  await kubectl(["exec", "--stdin", pod, "--", "bash", "-c", `mkdir -p $(dirname ${path}) && cat > ${path}`], {
    input: content,
  });
}

const manifests = {
  apiVersion: "v1",
  kind: "List",
  items: [
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: pod },
      spec: { accessModes: ["ReadWriteMany"], resources: { requests: { storage: "1Gi" } } },
    },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: pod },
      spec: {
        containers: [
          {
            name: "pulumi",
            image: "pulumi/pulumi:latest-nonroot",
            command: ["sh", "-c", "pulumi version; id -u; exec sleep 3600"],
            volumeMounts: [
              { name: "data", mountPath: "/data" },
              { name: "tokens", mountPath: "/tokens" },
            ],
          },
        ],
        volumes: [
          { name: "data", persistentVolumeClaim: { claimName: pod } },
          {
            name: "tokens",
            projected: {
              sources: [
                { serviceAccountToken: { path: "token", audience: "urn:pulumi:org:example", expirationSeconds: 600 } },
              ],
            },
          },
        ],
      },
    },
  ],
};
