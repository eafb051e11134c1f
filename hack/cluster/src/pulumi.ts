/** The versions of the Pulumi CLI that tests can run with: the newest one, and the oldest one that the agent supports. */

// renovate: datasource=go depName=github.com/pulumi/pulumi/pkg/v3
export const pulumiVersion = "3.259.0";
// renovate: datasource=go depName=github.com/pulumi/pulumi-yaml
const yamlHostVersion = "1.38.3";

type PulumiTool = "pulumi" | "pulumi-language-yaml";
type Release = Readonly<Record<PulumiTool, string>>;

const newestRelease: Release = { pulumi: pulumiVersion, "pulumi-language-yaml": yamlHostVersion };
const newestMinor = pulumiVersion.replace(/\.\d+$/, "");

/** Each has a module file, for example go/pulumi/go-3.105.mod, with the language host of its time. */
const olderReleases: Readonly<Record<string, Release>> = {
  "3.105": { pulumi: "3.105.0", "pulumi-language-yaml": "1.5.0" },
};

/** What the linker sets. */
const versionVariables: Readonly<Record<PulumiTool, readonly string[]>> = {
  pulumi: ["github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"],
  "pulumi-language-yaml": ["github.com/pulumi/pulumi-yaml/pkg/version.Version"],
};
/** Old CLIs print another variable, which newer ones do not have. */
const olderVariables: typeof versionVariables = {
  ...versionVariables,
  pulumi: [...versionVariables.pulumi, "github.com/pulumi/pulumi/pkg/v3/version.Version"],
};

interface PulumiBuild {
  /** For `go -modfile`. */
  readonly moduleFile: string;
  readonly variables: Readonly<Record<string, string>>;
}

/** `wanted` is the value of PULUMI, for example `3.105`. */
export const cliVersion = (wanted: string | undefined): string => releaseFor(wanted || newestMinor).pulumi;

function releaseFor(minor: string): Release {
  const release = minor === newestMinor ? newestRelease : olderReleases[minor];
  if (release !== undefined) return release;
  const known = [...Object.keys(olderReleases), newestMinor];
  throw new Error(`PULUMI is ${minor}: set it to one of ${known.join(", ")}`);
}

export function pulumiBuild(tool: PulumiTool, wanted: string | undefined): PulumiBuild {
  const minor = wanted || newestMinor;
  const release = releaseFor(minor);
  const isNewest = release === newestRelease;
  const variables = (isNewest ? versionVariables : olderVariables)[tool];
  return {
    moduleFile: isNewest ? "go.mod" : `go-${minor}.mod`,
    variables: Object.fromEntries(variables.map((name) => [name, `v${release[tool]}`])),
  };
}
