/** GitHub, and Gitea and Forgejo, whose payloads are like GitHub's. */
import {
  hasHmac,
  jsonOf,
  malformed,
  other,
  ping,
  pullRequestTo,
  pushTo,
  refNamed,
  type Forge,
  type Hook,
  type HookContent,
} from "./hook.ts";

export const github: Forge = {
  verify: (hook, secret) => hasHmac(hook, secret, { header: "x-hub-signature-256", prefix: "sha256=" }),
  parse: (hook) => parseEvent(hook, hook.header("x-github-event")),
};

/** Forgejo sends the headers of Gitea, too. Both also send those of GitHub. */
export const gitea: Forge = {
  verify: (hook, secret) =>
    ["x-gitea-signature", "x-forgejo-signature"].some((header) => hasHmac(hook, secret, { header, prefix: "" })),
  parse: (hook) => parseEvent(hook, hook.header("x-gitea-event") ?? hook.header("x-forgejo-event")),
};

function parseEvent(hook: Hook, event: string | undefined): HookContent {
  if (event === "ping") return ping;
  if (event !== "push" && event !== "create" && event !== "pull_request") return other;
  const json = jsonOf(hook);
  if (!json) return malformed;
  const urls = ["clone_url", "ssh_url", "html_url"].map((name) => json.at("repository", name).value);
  if (event === "pull_request") return pullRequestTo(urls);
  const ref = json.at("ref").value;
  const isTag = json.at("ref_type").value === "tag";
  return pushTo(urls, [event === "create" ? refNamed(ref, isTag) : ref]);
}
