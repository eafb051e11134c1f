import { expect, test } from "bun:test";
import type { PodTemplateSpec } from "kubernetes-types/core/v1";

import type { Readings } from "./references.ts";
import { withSecretVariables } from "./secret-variables.ts";

const secret = (name: string, data: Record<string, string>, secretKeys?: readonly string[]): Readings[number] => ({
  kind: "Secret",
  name,
  found: { uid: "u", data, ...(secretKeys && { secretKeys }) },
});

const listed = (container: object, readings: Readings): string | undefined => {
  const template = { spec: { containers: [{ name: "pulumi", ...container }] } } as PodTemplateSpec;
  const { env = [] } = withSecretVariables(template, readings).spec?.containers[0] ?? {};
  return env.find(({ name }) => name === "PULUMI_OPERATOR_SECRET_VARIABLES")?.value;
};

const from = (name: string, key: string) => ({ valueFrom: { secretKeyRef: { name, key } } });

test("variables from a Secret are listed, and no others", () => {
  const env = [
    { name: "DATABASE_URL", ...from("db", "url") },
    { name: "PLAIN", value: "x" },
    { name: "MAPPED", valueFrom: { configMapKeyRef: { name: "c", key: "k" } } },
  ];
  expect(listed({ env }, [secret("db", { url: "postgres://u:p@h" })])).toBe("DATABASE_URL");
  expect(listed({ env: [{ name: "PLAIN", value: "x" }] }, [])).toBeUndefined();
});

test("variables from a whole Secret are listed under their names in the container", () => {
  const envFrom = [{ prefix: "DB_", secretRef: { name: "db" } }, { configMapRef: { name: "c" } }];
  expect(listed({ envFrom }, [secret("db", { url: "a", user: "b" })])).toBe("DB_url,DB_user");
});

test("of the outputs of a Stack, only the secret ones are listed", () => {
  const env = [
    { name: "BUCKET", ...from("base-outputs", "bucket") },
    { name: "KEY", ...from("base-outputs", "key") },
  ];
  expect(listed({ env }, [secret("base-outputs", { bucket: "b", key: "k" }, ["key"])])).toBe("KEY");
});

test("variables of other containers are not listed, because the agent does not see them", () => {
  const template = { spec: { containers: [{ name: "sidecar", env: [{ name: "A", ...from("db", "url") }] }] } };
  expect(withSecretVariables(template as PodTemplateSpec, [])).toEqual(template as PodTemplateSpec);
});
