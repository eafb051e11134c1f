/** Webhooks of all senders. */
import type { Receiver, ReceiverType } from "@pko/api";

import { forges } from "../../../packages/operator/src/webhooks/forges/index.ts";
import type { Hook, HookContent } from "../../../packages/operator/src/webhooks/forges/hook.ts";
import { acceptedPush } from "../../../packages/operator/src/webhooks/intake.ts";
import { hold, jsonOf, secret, type Target } from "../engine/target.ts";

const types = Object.keys(forges) as ReceiverType[];

/** An input has headers and a body: a text, or a value that is sent as JSON. */
function hookIn(input: Uint8Array): Hook | undefined {
  const { headers, body } = (jsonOf(input) ?? {}) as { headers?: unknown; body?: unknown };
  if (typeof headers !== "object" || headers === null) return undefined;
  const known = new Map(Object.entries(headers).filter(([, value]) => typeof value === "string"));
  const text = typeof body === "string" ? body : (JSON.stringify(body) ?? "");
  return { header: (name) => known.get(name) as string | undefined, body: Buffer.from(text) };
}

const receiver = (type: ReceiverType): Receiver => ({
  apiVersion: "pulumi.com/v1",
  kind: "Receiver",
  metadata: { name: "hooks", namespace: "default" },
  spec: {
    type,
    secretRef: { name: "s" },
    filter: { repositories: ["acme/web"], refs: ["refs/heads/*", "!refs/heads/x"] },
  },
});

function check(input: Uint8Array): void {
  const hook = hookIn(input);
  if (!hook) return;
  for (const type of types) {
    hold(!forges[type].verify(hook, Buffer.from(secret.repeat(2))), "nobody can guess a secret");
    const content = forges[type].parse(hook);
    checkContent(content);
    if (content.kind === "push" || content.kind === "pullRequest") checkPush(acceptedPush(receiver(type), content));
  }
}

function checkContent(content: HookContent): void {
  if (content.kind !== "push" && content.kind !== "pullRequest") return;
  hold(content.repositories.length > 0 && content.repositories.length <= 16, "a push has some repositories");
  if (content.kind === "push") hold(content.refs.length <= 1000, "a push has a limited number of refs");
}

function checkPush(push: ReturnType<typeof acceptedPush>): void {
  hold(
    push?.refs.every((ref) => ref.startsWith("refs/heads/")) ?? true,
    "only refs that match the filter are accepted",
  );
}

const repository = {
  clone_url: "https://github.com/acme/web.git",
  ssh_url: "git@github.com:acme/web.git",
  html_url: "https://github.com/acme/web",
};
const project = { git_http_url: "https://gitlab.example/acme/web.git", web_url: "https://gitlab.example/acme/web" };
const links = {
  html: { href: "https://bitbucket.org/acme/web" },
  clone: [{ href: "https://git.example/scm/acme/web.git" }],
};

const seeds: readonly (readonly [headers: Record<string, string>, body: unknown])[] = [
  [
    { "x-github-event": "push", "x-gitea-event": "push" },
    { ref: "refs/heads/main", repository },
  ],
  [
    { "x-github-event": "create", "x-gitea-event": "create" },
    { ref: "v1", ref_type: "tag", repository },
  ],
  [{ "x-github-event": "pull_request" }, { action: "opened", number: 7, repository }],
  [
    { "x-github-event": "push", "content-type": "application/x-www-form-urlencoded" },
    "payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D",
  ],
  [
    { "x-hub-signature-256": "sha256=00", authorization: "Basic aG9va3M6eA==" },
    { object_kind: "push", ref: "refs/heads/main", project },
  ],
  [{}, { event_name: "repository_update", refs: ["refs/heads/main"], project }],
  [
    { "x-event-key": "repo:push" },
    {
      repository: { links },
      push: { changes: [{ new: { type: "branch", name: "main" } }, { new: null, old: { type: "tag", name: "v1" } }] },
    },
  ],
  [
    { "x-event-key": "repo:refs_changed" },
    { repository: { slug: "web", project: { key: "ACME" } }, changes: [{ ref: { id: "refs/heads/x" } }] },
  ],
  [{ "x-event-key": "pr:opened" }, { pullRequest: { toRef: { repository: { links } } } }],
  [
    {},
    {
      eventType: "git.push",
      resource: {
        repository: { remoteUrl: "https://dev.azure.com/acme/shop/_git/web" },
        refUpdates: [{ name: "refs/heads/main" }],
      },
    },
  ],
  [{}, { repository: "https://git.example/acme/web", ref: "refs/heads/main" }],
];

export const webhooksTarget: Target = {
  name: "webhooks",
  form: "json",
  seeds: seeds.map(([headers, body]) => JSON.stringify({ headers, body })),
  rounds: 2000,
  check,
};
