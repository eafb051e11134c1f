/** GitLab, whose hooks contain the secret itself. */
import { isSameText, jsonOf, malformed, other, pullRequestTo, pushTo, type Forge } from "./hook.ts";

const events: ReadonlySet<unknown> = new Set(["push", "tag_push", "repository_update"]);
const mergeRequest = "merge_request";

export const gitlab: Forge = {
  verify(hook, secret) {
    const given = hook.header("x-gitlab-token");
    return given !== undefined && isSameText(given, secret);
  },
  parse(hook) {
    const json = jsonOf(hook);
    if (!json) return malformed;
    const event = json.at("object_kind").value ?? json.at("event_name").value;
    if (!events.has(event) && event !== mergeRequest) return other;
    const urls = ["git_http_url", "git_ssh_url", "web_url"].map((name) => json.at("project", name).value);
    if (event === mergeRequest) return pullRequestTo(urls);
    return pushTo(urls, [json.at("ref").value, ...json.at("refs").items.map(({ value }) => value)]);
  },
};
