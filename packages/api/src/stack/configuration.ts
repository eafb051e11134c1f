/** What a Stack's program is given: configuration, secrets and environment. */
import { Type } from "typebox";

import {
  atomicList,
  flag,
  keepUnknown,
  labels,
  mapOf,
  optional,
  text,
  texts,
  type JsonObject,
} from "../schema/field.ts";
import { Oidc } from "../shared/oidc.ts";
import { ValueReference } from "./reference.ts";

const ConfigMapValue = Type.Object(
  {
    name: text("The name of the ConfigMap."),
    key: text("The key within the ConfigMap."),
    json: optional(flag("Whether the text is JSON to be parsed, not a plain string.")),
  },
  { description: "A value in a ConfigMap." },
);

export const configurationFields = {
  config: optional(
    Type.Unsafe<JsonObject>({
      type: "object",
      description: "Configuration values by key; a value is text, number, boolean, object or list.",
      ...keepUnknown,
    }),
  ),
  configRef: optional(mapOf(ConfigMapValue, "Configuration values by key, taken from ConfigMaps.")),
  configRefs: optional(mapOf(ConfigMapValue, "The same as configRef.")),
  secretsRef: optional(mapOf(ValueReference, "Secret configuration values by key.")),
  secrets: optional(labels("Deprecated, use secretsRef: secret configuration values by key, in plain text.")),
  secretsProvider: optional(text("The provider that encrypts the stack's secrets, such as awskms:// and a key.")),
  environment: optional(texts("Pulumi ESC environments to attach to the stack.", atomicList)),
  envRefs: optional(mapOf(ValueReference, "Environment variables of Pulumi by name.")),
  envs: optional(texts("Deprecated, use envRefs: ConfigMaps whose keys become environment variables.")),
  envSecrets: optional(texts("Deprecated, use envRefs: Secrets whose keys become environment variables.")),
  accessTokenSecret: optional(
    text("Deprecated, use envRefs: the Secret whose key accessToken becomes PULUMI_ACCESS_TOKEN."),
  ),
  oidc: optional(Oidc),
  backend: optional(text("The address of the state backend, such as s3://bucket; Pulumi Cloud when left out.")),
};
