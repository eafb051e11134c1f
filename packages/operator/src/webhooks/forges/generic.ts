/** Any sender: a signed JSON object with the URL of the repository and, optionally, the ref. */
import { hasHmac, isFullRef, jsonOf, malformed, pushTo, type Forge } from "./hook.ts";

export const generic: Forge = {
  verify: (hook, secret) => hasHmac(hook, secret, { header: "x-signature", prefix: "sha256=" }),
  parse(hook) {
    const json = jsonOf(hook);
    if (!json) return malformed;
    const ref = json.at("ref").value;
    // Without the ref, any may have changed. A short name must not mean the same.
    if (ref !== undefined && !isFullRef(ref)) return malformed;
    return pushTo([json.at("repository").value], [ref]);
  },
};
