/** Requests of browsers to the console, and objects that it masks before browsers get them. */
import { isObject } from "@pko/kube";

import { allowedRequest } from "../../../packages/console/src/server/allow-list.ts";
import { maskResponse } from "../../../packages/console/src/server/mask.ts";
import { parseSse } from "../../../packages/console/src/web/lib/sse.ts";
import { hold, jsonOf, secret, textOf, type Target } from "../engine/target.ts";

function check(input: Uint8Array): void {
  const value = jsonOf(input);
  parseSse(textOf(input));
  // The API server has removed what is not in the schema.
  if (!/[[{]{200}|(\{"a":){200}/.test(textOf(input))) checkMask(value);
  const { method, path } = (value ?? {}) as { method?: unknown; path?: unknown };
  if (typeof method === "string" && typeof path === "string") checkRequest(method, path);
}

function checkRequest(method: string, path: string): void {
  const url = URL.parse(path, "https://console.example");
  const request = url && allowedRequest(method, url.pathname, url.searchParams);
  if (!request) return;
  hold(/^\/api(s\/[a-z0-9.]+)?\/v1(alpha1)?\//.test(request.path), "a path is one of the Kubernetes API");
  hold(!/\.\.|\/\/|[%?#\\]/.test(request.path), "a path has no escapes");
  hold(
    !/\/(secrets|configmaps|serviceaccounts|exec|proxy|attach|portforward)\b/.test(request.path),
    "secrets cannot be read",
  );
  hold(!request.query.has("watch") && !request.query.has("follow"), "a request ends");
}

/** Of a Stack: the values of literal references and of `secrets`. */
function checkMask(object: unknown): void {
  const masked = maskResponse(object);
  if (!isObject(object) || !isObject(object["spec"]) || !isObject(masked)) return;
  const { secrets, secretsRef } = masked["spec"] as Readonly<Record<string, unknown>>;
  if (isObject(secrets)) hold(!JSON.stringify(Object.values(secrets)).includes(secret), "secrets are masked");
  if (isObject(secretsRef)) {
    const literals = Object.values(secretsRef)
      .filter(isObject)
      .map((each) => each["literal"])
      .filter(isObject);
    hold(
      !literals.some((each) => typeof each["value"] === "string" && each["value"] !== "[secret]"),
      "literals are masked",
    );
  }
}

const stack = {
  metadata: { name: "web", annotations: { "kubectl.kubernetes.io/last-applied-configuration": secret } },
  spec: {
    secrets: { a: secret },
    secretsRef: { b: { type: "Literal", literal: { value: secret } } },
    stacks: [{ config: [{ key: "k", secret: true, value: secret }] }],
  },
};

export const consoleTarget: Target = {
  name: "console",
  form: "json",
  seeds: [
    JSON.stringify(stack),
    JSON.stringify({ items: [stack] }),
    ...[
      ["GET", "/k8s/apis/pulumi.com/v1/namespaces/default/stacks?limit=5&labelSelector=a%3Db"],
      ["GET", "/k8s/api/v1/namespaces/default/pods/web-workspace-0/log?container=pulumi&tailLines=10"],
      ["PATCH", "/k8s/apis/pulumi.com/v1/namespaces/default/stacks/web"],
      ["POST", "/k8s/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"],
    ].map(([method, path]) => JSON.stringify({ method, path })),
  ],
  words: ["%2e%2e", "%2F", "/../", "secrets", "watch=true", "namespaces", "log", "exec"],
  rounds: 3000,
  check,
};
