/** Bitbucket Cloud and Bitbucket Data Center. */
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
  type Json,
} from "./hook.ts";

const signature = { header: "x-hub-signature", prefix: "sha256=" };

/** Comments and approvals change no preview. */
const cloudPullRequests: ReadonlySet<unknown> = new Set(
  ["created", "updated", "fulfilled", "rejected"].map((change) => `pullrequest:${change}`),
);
const dataCenterPullRequests: ReadonlySet<unknown> = new Set(
  ["opened", "from_ref_updated", "modified", "merged", "declined", "deleted"].map((change) => `pr:${change}`),
);

export const bitbucket: Forge = {
  verify: (hook, secret) => hasHmac(hook, secret, signature),
  parse(hook) {
    const event = hook.header("x-event-key");
    const isPullRequest = cloudPullRequests.has(event);
    if (event !== "repo:push" && !isPullRequest) return other;
    const json = jsonOf(hook);
    if (!json) return malformed;
    const url = json.at("repository", "links", "html", "href").value;
    return isPullRequest ? pullRequestTo([url]) : pushTo([url], json.at("push", "changes").items.map(changedRef));
  },
};

/** `new` is null for a deleted ref. */
function changedRef(change: Json): string | undefined {
  const ref = change.at("new").value ? change.at("new") : change.at("old");
  return refNamed(ref.at("name").value, ref.at("type").value === "tag");
}

export const bitbucketDataCenter: Forge = {
  verify: (hook, secret) => hasHmac(hook, secret, signature),
  parse(hook) {
    const event = hook.header("x-event-key");
    if (event === "diagnostics:ping") return ping;
    const isPullRequest = dataCenterPullRequests.has(event);
    if (event !== "repo:refs_changed" && !isPullRequest) return other;
    const json = jsonOf(hook);
    if (!json) return malformed;
    if (isPullRequest) return pullRequestTo(urlsOf(json.at("pullRequest", "toRef", "repository")));
    const refs = json.at("changes").items.map((change) => change.at("ref", "id").value);
    return pushTo(urlsOf(json.at("repository")), refs);
  },
};

function urlsOf(repository: Json): unknown[] {
  const urls = repository.at("links", "clone").items.map((link) => link.at("href").value);
  return urls.length > 0 ? urls : [projectAndName(repository)];
}

/** Older versions do not report URLs. */
function projectAndName(repository: Json): string | undefined {
  const [project, name] = [repository.at("project", "key").value, repository.at("slug").value];
  return typeof project === "string" && typeof name === "string" ? `${project}/${name}` : undefined;
}
