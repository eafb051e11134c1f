/** Any sender: a signed JSON object with the URL of the repository and, optionally, the ref. */
import { hasHmac, jsonOf, malformed, pushTo, type Forge } from "./hook.ts";

export const generic: Forge = {
  verify: (hook, secret) => hasHmac(hook, secret, { header: "x-signature", prefix: "sha256=" }),
  parse(hook) {
    const json = jsonOf(hook);
    return json ? pushTo([json.at("repository").value], [json.at("ref").value]) : malformed;
  },
};
