/** Which Pulumi Cloud a command of the CLI speaks to, by the CLI's own rules; other backends know no access tokens. */

const pulumiCloud = "https://api.pulumi.com";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Without a slash at its end; undefined for a backend that is not Pulumi Cloud. `project` is what Pulumi.yaml says. */
export function cloudUrl(env: Environment, project: string | undefined): string | undefined {
  const url = env["PULUMI_BACKEND_URL"] || project || env["PULUMI_API"] || pulumiCloud;
  return /^https?:\/\//.test(url) ? url.replace(/\/+$/, "") : undefined;
}
