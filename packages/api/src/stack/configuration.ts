/** The inputs of a Stack's program: configuration, secrets and environment. */
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
    key: text("The key in the ConfigMap."),
    json: optional(flag("Whether to parse the value as JSON. By default, it is a string.")),
  },
  { description: "A value in a ConfigMap." },
);

export const configurationFields = {
  config: optional(
    Type.Unsafe<JsonObject>({
      type: "object",
      description: "Configuration values by key. A value is a string, number, boolean, object or list.",
      ...keepUnknown,
    }),
  ),
  configRef: optional(mapOf(ConfigMapValue, "Configuration values by key, read from ConfigMaps.")),
  configRefs: optional(mapOf(ConfigMapValue, "An alias of configRef.")),
  secretsRef: optional(mapOf(ValueReference, "Secret configuration values by key.")),
  secrets: optional(labels("Deprecated: use secretsRef. Secret configuration values by key, in plain text.")),
  secretsProvider: optional(text("The secrets provider that encrypts the stack's secrets, such as awskms://KEY.")),
  environment: optional(texts("Pulumi ESC environments to import into the stack's configuration.", atomicList)),
  envRefs: optional(mapOf(ValueReference, "Environment variables of the Pulumi CLI by name.")),
  envs: optional(texts("Deprecated: use envRefs. ConfigMaps whose keys become environment variables.")),
  envSecrets: optional(texts("Deprecated: use envRefs. Secrets whose keys become environment variables.")),
  accessTokenSecret: optional(
    text("Deprecated: use envRefs. The Secret whose key accessToken becomes PULUMI_ACCESS_TOKEN."),
  ),
  oidc: optional(Oidc),
  backend: optional(text("The URL of the state backend, such as s3://bucket. Defaults to Pulumi Cloud.")),
};
