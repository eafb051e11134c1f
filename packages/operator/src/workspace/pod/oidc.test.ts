import { describe, expect, test } from "bun:test";

import { normaliseWorkspace } from "@pko/api";

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
  const normal = normaliseWorkspace({
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
    ["for an organization and a stack alone", named("acme/dev"), automatic, { organization: "acme" }],
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
    ["with the operator's organization where it lists no stacks", { stacks: [] }, ofTeam, { organization: "fallback" }],
    ["as its spec says, though it is not automatic", { oidc: {} }, plainOidc, { organization: "acme" }],
    ["with what the operator says", {}, ofTeam, { holder: ofTeam.holder, expirationSeconds: 600 }],
    ["with the operator's organization where its stack has none", named("dev"), ofTeam, { organization: "fallback" }],
    ["as its spec says, not the operator", { oidc: {} }, ofTeam, { holder: organization, expirationSeconds: 600 }],
    [
      "for the time that its spec says",
      { oidc: { user: "jane", expirationSeconds: 90 } },
      ofTeam,
      { holder: { kind: "user", user: "jane" }, expirationSeconds: 90 },
    ],
    ["with another backend that speaks http", variable("PULUMI_BACKEND_URL", "https://pulumi.acme.com"), automatic, {}],
    ["though it reads a Secret without a token", { envFrom: [{ secretRef: { name: "other" } }] }, automatic, {}],
  ];
  for (const [what, spec, defaults, expected] of cases) {
    test(what, () => expect(decide(spec, defaults)).toMatchObject({ kind: "exchange", exchange: expected }));
  }
});

describe("a container has a path of credentials of its own", () => {
  const template = (part: object) => ({ podTemplate: { spec: { containers: [{ name: "pulumi", ...part }] } } });
  const path = { envFrom: [{ secretRef: { name: "path" }, prefix: "PULUMI_" }] };
  const cases: readonly (readonly [string, object, boolean])[] = [
    ["not without a word about it", {}, false],
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
    ["with a token of its own", variable("PULUMI_ACCESS_TOKEN", "pul-x")],
    ["with a token that is still to come", { env: [{ name: "PULUMI_ACCESS_TOKEN", ...tokenFromSecret }] }],
    ["with a token among the keys of a Secret", { envFrom: [{ secretRef: { name: "bundle" } }] }],
    [
      "with a token that its template gives",
      { podTemplate: { spec: { containers: [{ name: "pulumi", ...variable("PULUMI_ACCESS_TOKEN", "pul-x") }] } } },
    ],
    ["with a token, whatever its spec says", { oidc: {}, ...variable("PULUMI_ACCESS_TOKEN", "pul-x") }],
    ["with a backend of its own", variable("PULUMI_BACKEND_URL", "file:///state")],
    [
      "with a backend that a Secret names",
      { env: [{ name: "PULUMI_BACKEND_URL", valueFrom: { secretKeyRef: { name: "backend", key: "url" } } }] },
    ],
    ["where nobody names an organization", named("dev")],
    ["where its stacks are of several organizations", ofSeveral, ofTeam],
    ["where it lists no stacks, and nobody names an organization", { stacks: [] }],
    ["where the operator does not want it", {}, plainOidc],
  ];
  for (const [what, spec, defaults] of cases)
    test(what, () => expect(decide(spec, defaults)).toEqual({ kind: "none" }));
});

test("a workspace that asks for it without an organization is told what is missing", () => {
  expect(decide({ oidc: {}, ...named("dev") })).toMatchObject({
    kind: "invalid",
    problem: expect.stringContaining("spec.oidc.organization: is missing; name the Pulumi organization") as string,
  });
});

test("a workspace that asks for it for stacks of several organizations is told to name one", () => {
  expect(decide({ oidc: {}, ...ofSeveral })).toMatchObject({
    kind: "invalid",
    problem: expect.stringContaining("start with several organizations; name the one to sign in to") as string,
  });
});

test("a scope says whose token it is", () => {
  expect(tokenScope({ kind: "team", team: "platform" })).toBe("team:platform");
  expect(tokenScope({ kind: "user", user: "jane" })).toBe("user:jane");
  expect(tokenScope({ kind: "organization", admin: true })).toBe("admin");
  expect(tokenScope(organization)).toBe("");
});
