/** Bitbucket Cloud and Bitbucket Data Center. */
import { hasHmac, jsonOf, malformed, other, ping, pushTo, refNamed, type Forge, type Json } from "./hook.ts";

const signature = { header: "x-hub-signature", prefix: "sha256=" };

export const bitbucket: Forge = {
  verify: (hook, secret) => hasHmac(hook, secret, signature),
  parse(hook) {
    if (hook.header("x-event-key") !== "repo:push") return other;
    const json = jsonOf(hook);
    if (!json) return malformed;
    const repository = json.at("repository");
    return pushTo([repository.at("links", "html", "href").value], json.at("push", "changes").items.map(changedRef));
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
    if (event !== "repo:refs_changed") return other;
    const json = jsonOf(hook);
    if (!json) return malformed;
    const repository = json.at("repository");
    const urls = repository.at("links", "clone").items.map((link) => link.at("href").value);
    const refs = json.at("changes").items.map((change) => change.at("ref", "id").value);
    return pushTo(urls.length > 0 ? urls : [projectAndName(repository)], refs);
  },
};

/** Older versions do not report URLs. */
function projectAndName(repository: Json): string | undefined {
  const [project, name] = [repository.at("project", "key").value, repository.at("slug").value];
  return typeof project === "string" && typeof name === "string" ? `${project}/${name}` : undefined;
}
