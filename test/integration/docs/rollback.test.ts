/** The command in docs/operations.md that copies the CA before a rollback. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { caSecretName, formerCaSecretName } from "@pko/api";
import { builtin } from "@pko/kube";
import { expect, test } from "bun:test";

import { commandsIn } from "../../docs/commands.ts";
import { root } from "../../docs/pages.ts";
import { apiServerWithApi, testTimeoutMs } from "../api/install.ts";
import { Shell } from "./shell.ts";

const namespace = "pulumi-kubernetes-operator";

function copyCommand(): string {
  const page = readFileSync(join(root, "docs/operations.md"), "utf8");
  const section = page.slice(page.indexOf("\n### Roll back to a version whose chart holds the CA"));
  return commandsIn(section).find((line) => line.includes(`patch secret ${formerCaSecretName}`)) ?? "";
}

test(
  "the documented command copies the CA to the Secret of older versions",
  async () => {
    // Its manifest has created the namespace.
    const server = await apiServerWithApi();
    using shell = new Shell(server);
    try {
      const create = `kubectl create secret generic -n ${namespace}`;
      await shell.run(
        `${create} ${formerCaSecretName} --from-literal=authorities.json='["a"]' --from-literal=ca.crt=a`,
      );
      await shell.run(`${create} ${caSecretName} --from-literal=authorities.json='["a","b"]' --from-literal=ca.crt=ab`);
      await shell.run(copyCommand());
      const present = await server.client.get(builtin.secrets, { namespace, name: caSecretName });
      const former = await server.client.get(builtin.secrets, { namespace, name: formerCaSecretName });
      expect(former.data).toEqual(present.data ?? {});
      expect(Buffer.from(former.data?.["authorities.json"] ?? "", "base64").toString()).toBe('["a","b"]');
    } finally {
      await shell.run(`kubectl delete secret -n ${namespace} ${formerCaSecretName} ${caSecretName}`);
    }
  },
  testTimeoutMs,
);
