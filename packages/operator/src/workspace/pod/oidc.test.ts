import { describe, expect, test } from "bun:test";

import { normalizeWorkspace } from "@pko/api";

import { buildPodTemplate } from "./build-pod.ts";
import { exchangeOf, plainOidc, tokenScope, type OidcDefaults, type TokenExchange } from "./oidc.ts";
import type { Readings } from "./references.ts";

const automatic: OidcDefaults = { ...plainOidc, automatic: true };
const ofTeam: OidcDefaults = {
  automatic: true,
  organization: "fallback",
  holder: { kind: "team", team: "platform" },
  expirationSeconds: 600,
};
const bundle: Readings = [
  { kind: "Secret", name: "bundle", found: { uid: "u", data: { PULUMI_ACCESS_TOKEN: "pul-x", OTHER: "y" } } },
  { kind: "Secret", name: "other", found: { uid: "u", data: { OTHER: "y" } } },
  { kind: "Secret", name: "path", found: { uid: "u", data: { CREDENTIALS_PATH: "/mine" } } },
  { kind: "Secret", name: "backend", found: { uid: "u", data: { url: "s3://bucket" } } },
];

function decide(spec: object, defaults: OidcDefaults = automatic) {
  const normal = normalizeWorkspace({
    metadata: { name: "web", namespace: "team" },
    spec: { stacks: [{ name: "acme/web/dev" }], ...spec },
  });
  if (!normal.ok) throw new Error(JSON.stringify(normal.problems));
  const built = buildPodTemplate(normal.value, { settings: { agentImage: "agent:1", idleTimeoutMs: 0 } });
  if (!built.ok || !built.template.spec) throw new Error("no pod");
  return exchangeOf(normal.value, defaults, { spec: built.template.spec, readings: bundle });
}

const named = (name: string) => ({ stacks: [{ name }] });
const variable = (name: string, value: string) => ({ env: [{ name, value }] });
const ofSeveral = { stacks: [{ name: "acme/web/dev" }, { name: "beta/web/dev" }] };
const organization = { kind: "organization", admin: false } as const;

describe("a workspace exchanges its service account's token", () => {
  const cases: readonly (readonly [string, object, OidcDefaults, Partial<TokenExchange>])[] = [
    ["for the organization of its stack's name", {}, automatic, { organization: "acme", holder: organization }],
    ["for an organization with a stack name only", named("acme/dev"), automatic, { organization: "acme" }],
    [
      "for the organization that the names of its stacks share",
      { stacks: [{ name: "dev" }, { name: "acme/web/dev" }, { name: "acme/web/prod" }] },
      automatic,
      { organization: "acme" },
    ],
    [
      "for the organization of its spec, though its stacks are of several",
      { oidc: { organization: "beta" }, stacks: [{ name: "acme/web/dev" }, { name: "beta/web/dev" }] },
      automatic,
      { organization: "beta" },
    ],
    ["with the operator's organization if it lists no stacks", { stacks: [] }, ofTeam, { organization: "fallback" }],
    ["as its spec requests, although it is not automatic", { oidc: {} }, plainOidc, { organization: "acme" }],
    ["with the operator's settings", {}, ofTeam, { holder: ofTeam.holder, expirationSeconds: 600 }],
    ["with the operator's organization if its stack has none", named("dev"), ofTeam, { organization: "fallback" }],
    [
      "as its spec requests, in place of the operator's settings",
      { oidc: {} },
      ofTeam,
      { holder: organization, expirationSeconds: 600 },
    ],
    [
      "for the time that its spec sets",
      { oidc: { user: "jane", expirationSeconds: 90 } },
      ofTeam,
      { holder: { kind: "user", user: "jane" }, expirationSeconds: 90 },
    ],
    ["with another HTTP backend", variable("PULUMI_BACKEND_URL", "https://pulumi.acme.com"), automatic, {}],
    ["although it reads a Secret without a token", { envFrom: [{ secretRef: { name: "other" } }] }, automatic, {}],
  ];
  for (const [what, spec, defaults, expected] of cases) {
    test(what, () => expect(decide(spec, defaults)).toMatchObject({ kind: "exchange", exchange: expected }));
  }
});

describe("a container has its own credentials path", () => {
  const template = (part: object) => ({ podTemplate: { spec: { containers: [{ name: "pulumi", ...part }] } } });
  const path = { envFrom: [{ secretRef: { name: "path" }, prefix: "PULUMI_" }] };
  const cases: readonly (readonly [string, object, boolean])[] = [
    ["not if it is not set", {}, false],
    ["not if a Secret has other variables", { envFrom: [{ secretRef: { name: "other" } }] }, false],
    ["not if a Secret does not exist yet", { envFrom: [{ secretRef: { name: "later", optional: true } }] }, false],
    ["if a Secret has it", path, true],
    ["if a Secret of the template has it", template(path), true],
    ["if it is set", variable("PULUMI_CREDENTIALS_PATH", "/mine"), true],
  ];
  for (const [what, spec, hasCredentialsPath] of cases) {
    test(what, () => expect(decide(spec)).toMatchObject({ exchange: { hasCredentialsPath } }));
  }
});

describe("a workspace exchanges nothing", () => {
  const tokenFromSecret = { valueFrom: { secretKeyRef: { name: "not-there-yet", key: "token" } } };
  const cases: readonly (readonly [string, object, OidcDefaults?])[] = [
    ["with its own token", variable("PULUMI_ACCESS_TOKEN", "pul-x")],
    [
      "with a token from a Secret that does not exist yet",
      { env: [{ name: "PULUMI_ACCESS_TOKEN", ...tokenFromSecret }] },
    ],
    ["with a token among the keys of a Secret", { envFrom: [{ secretRef: { name: "bundle" } }] }],
    [
      "with a token that its template gives",
      { podTemplate: { spec: { containers: [{ name: "pulumi", ...variable("PULUMI_ACCESS_TOKEN", "pul-x") }] } } },
    ],
    ["with a token, whatever its spec requests", { oidc: {}, ...variable("PULUMI_ACCESS_TOKEN", "pul-x") }],
    ["with its own backend", variable("PULUMI_BACKEND_URL", "file:///state")],
    [
      "with a backend that a Secret names",
      { env: [{ name: "PULUMI_BACKEND_URL", valueFrom: { secretKeyRef: { name: "backend", key: "url" } } }] },
    ],
    ["if no organization is set", named("dev")],
    ["if its stacks belong to several organizations", ofSeveral, ofTeam],
    ["if it lists no stacks, and no organization is set", { stacks: [] }],
    ["if the operator does not enable it", {}, plainOidc],
  ];
  for (const [what, spec, defaults] of cases)
    test(what, () => expect(decide(spec, defaults)).toEqual({ kind: "none" }));
});

test("a workspace that requests it without an organization gets a message about what is missing", () => {
  expect(decide({ oidc: {}, ...named("dev") })).toMatchObject({
    kind: "invalid",
    problem: expect.stringContaining("spec.oidc.organization: is missing; name the Pulumi organization") as string,
  });
});

test("a workspace that requests it for stacks of several organizations gets a message to name one", () => {
  expect(decide({ oidc: {}, ...ofSeveral })).toMatchObject({
    kind: "invalid",
    problem: expect.stringContaining("start with several organizations; name the one to sign in to") as string,
  });
});

test("a scope names the holder of the token", () => {
  expect(tokenScope({ kind: "team", team: "platform" })).toBe("team:platform");
  expect(tokenScope({ kind: "user", user: "jane" })).toBe("user:jane");
  expect(tokenScope({ kind: "organization", admin: true })).toBe("admin");
  expect(tokenScope(organization)).toBe("");
});
