/** Which Pulumi Cloud the CLI uses, by the CLI's own rules; other backends have no access tokens. */

import type { Environment } from "@pko/git";

const pulumiCloud = "https://api.pulumi.com";

/** Without a trailing slash; undefined for a backend other than Pulumi Cloud. `backend` comes from Pulumi.yaml. */
export function cloudUrl(env: Environment, backend: string | undefined): string | undefined {
  const url = env["PULUMI_BACKEND_URL"] || backend || env["PULUMI_API"] || pulumiCloud;
  return /^https?:\/\//.test(url) ? url.replace(/\/+$/, "") : undefined;
}
