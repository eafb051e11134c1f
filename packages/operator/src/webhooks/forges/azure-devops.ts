/** Azure DevOps, whose service hooks authenticate with a password. */
import { isSameText, jsonOf, malformed, other, pushTo, type Forge } from "./hook.ts";

export const azureDevOps: Forge = {
  verify(hook, secret) {
    const [, encoded] = /^basic ([a-z0-9+/=]+)$/i.exec(hook.header("authorization") ?? "") ?? [];
    if (encoded === undefined) return false;
    const credentials = Buffer.from(encoded, "base64").toString("utf8");
    const colon = credentials.indexOf(":");
    // The user name is not secret, so it may be any.
    return colon >= 0 && isSameText(credentials.slice(colon + 1), secret);
  },
  parse(hook) {
    const json = jsonOf(hook);
    if (!json) return malformed;
    if (json.at("eventType").value !== "git.push") return other;
    const refs = json.at("resource", "refUpdates").items.map((update) => update.at("name").value);
    return pushTo([json.at("resource", "repository", "remoteUrl").value], refs);
  },
};
