/** Invalid Stacks that the API server accepts, as for the Go operator, and that the operator reports as stalled. */
import type { BadStack } from "./bad-stacks.ts";

type Fields = Readonly<Record<string, unknown>>;

const named = (name: string, spec: Fields) => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name, namespace: "default" },
  spec,
});

const stalled = (what: string, spec: Fields, expected: string): BadStack => ({
  what,
  stack: named("web", spec),
  expected,
});

const program = (fields: Fields) => ({ stack: "dev", programRef: { name: "web" }, ...fields });
const git = (fields: Fields) => ({ stack: "dev", projectRepo: "https://host/repo", branch: "main", ...fields });
const flux = (fields: Fields, dir?: string) => ({
  stack: "dev",
  fluxSource: {
    sourceRef: { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "Bucket", name: "b", ...fields },
    ...(dir && { dir }),
  },
});
const template = (spec: Fields) => program({ workspaceTemplate: { spec } });
const secret = (name: string, key: string) => ({ type: "Secret", secret: { name, key } });

const address = "spec.projectRepo: is not a valid URL of a Git repository; use https://HOST/PATH";
const container = (name: string) => ({ name, image: "busybox" });

export const stalledStacks: readonly BadStack[] = [
  stalled("an empty stack", program({ stack: "" }), "spec.stack: is not a valid name of a Pulumi stack"),
  stalled(
    "a stack that looks like an option",
    program({ stack: "--help" }),
    "spec.stack: is not a valid name of a Pulumi",
  ),
  stalled("a stack of two lines", program({ stack: "a\nb" }), "spec.stack: is not a valid name of a Pulumi stack"),
  {
    what: "a name with a dot",
    stack: named("a.b", program({})),
    expected: "is not a valid name for the workspace's Service",
  },
  {
    what: "a name that starts with a digit",
    stack: named("1web", program({})),
    expected: "metadata.name: is not a valid",
  },
  stalled("a repository with the protocol git", git({ projectRepo: "git://host/repo" }), address),
  stalled("a repository in a file", git({ projectRepo: "file:///srv/repo" }), address),
  stalled("a repository on a path", git({ projectRepo: "/srv/repo" }), address),
  stalled("a command for a repository", git({ projectRepo: "ext::sh -c id" }), address),
  stalled("a repository that looks like an option", git({ projectRepo: "--upload-pack=id" }), address),
  stalled("an ssh host that looks like an option", git({ projectRepo: "git@-oProxyCommand=id:r" }), address),
  stalled("a host without a repository", git({ projectRepo: "https://host" }), address),
  stalled("a branch that looks like an option", git({ branch: "-x" }), "spec.branch: is not a valid branch name"),
  stalled("a branch with two dots", git({ branch: "a..b" }), "spec.branch: is not a valid branch name"),
  stalled("a branch with a space", git({ branch: "a b" }), "spec.branch: is not a valid branch name"),
  stalled("a tag that is a branch", git({ branch: "", tag: "refs/heads/a" }), "spec.tag: is not a valid tag name"),
  stalled("a tag with a colon", git({ branch: "", tag: "a:b" }), "spec.tag: is not a valid tag name"),
  stalled(
    "no source, and a pod template without init containers",
    { stack: "dev", workspaceTemplate: { spec: { podTemplate: { spec: { nodeSelector: { pool: "builds" } } } } } },
    "spec: the program has no source; set one of projectRepo",
  ),
  stalled(
    "a short commit",
    git({ branch: "", commit: "03658b5" }),
    "spec.commit: is not a full commit hash; use all 40",
  ),
  stalled("a folder outside the repository", git({ repoDir: "../x" }), "spec.repoDir: is outside the source"),
  stalled("a path that leaves the repository", git({ repoDir: "a/../../b" }), "spec.repoDir: is outside the source"),
  stalled("repoDir for a Flux source", { ...flux({}), repoDir: "a" }, "spec.repoDir: requires a Git repository"),
  stalled(
    "empty credentials",
    git({ gitAuth: {} }),
    "spec.gitAuth: contains no credentials; set exactly one of accessToken",
  ),
  stalled(
    "credentials from a Secret with an invalid name",
    git({ gitAuthSecret: "Git_Auth" }),
    "spec.gitAuthSecret: is not a valid name",
  ),
  stalled("a folder outside the Flux source", flux({}, "../x"), "spec.fluxSource.dir: is outside the source"),
  stalled(
    "a Flux source with an invalid API version",
    flux({ apiVersion: "a/b/c" }),
    "sourceRef.apiVersion: is not a valid API version",
  ),
  stalled(
    "a Flux source with an empty kind",
    flux({ kind: "" }),
    "spec.fluxSource.sourceRef.kind: is not a valid kind",
  ),
  stalled(
    "a Flux source without a name",
    flux({ name: "" }),
    "spec.fluxSource.sourceRef.name: is not a valid name of a source",
  ),
  stalled(
    "a Program with an empty name",
    program({ programRef: { name: "" } }),
    "spec.programRef.name: is not a valid name",
  ),
  stalled(
    "a Program in another namespace",
    program({ programRef: { name: "other/web" } }),
    "spec.programRef.name: is not",
  ),
  stalled(
    "a folder in the image without a path",
    { stack: "dev", workspaceTemplate: { spec: { local: {} } } },
    "spec.workspaceTemplate.spec.local.dir: is required",
  ),
  stalled(
    "a variable from a Secret with an invalid name",
    program({ envRefs: { A: secret("My_Secret", "k") } }),
    "spec.envRefs.A.secret.name: is not a valid name of a Secret",
  ),
  stalled(
    "a secret value from a path",
    program({ secretsRef: { a: secret("s", "../../etc/passwd") } }),
    "spec.secretsRef.a.secret.key: is not a valid key of a Secret",
  ),
  stalled(
    "a variable from a path",
    program({ envRefs: { A: { type: "ConfigMap", configMap: { name: "../c", key: "k" } } } }),
    "spec.envRefs.A.configMap.name: is not a valid name of a ConfigMap",
  ),
  stalled(
    "configuration from a path",
    program({ configRef: { a: { name: "c", key: "../k" } } }),
    "spec.configRef.a.key: is not a valid key of a ConfigMap",
  ),
  stalled(
    "configuration from a ConfigMap without a name",
    program({ configRefs: { a: { name: "", key: "k" } } }),
    "spec.configRefs.a.name: is not a valid name of a ConfigMap",
  ),
  stalled(
    "an access token from a path",
    program({ accessTokenSecret: "../s" }),
    "spec.accessTokenSecret: is not a valid name of a Secret",
  ),
  stalled(
    "variables from a ConfigMap with an invalid name",
    program({ envs: ["ok", "Not_Ok"] }),
    "spec.envs[1]: is not a valid name of a ConfigMap",
  ),
  stalled(
    "variables from a Secret with an invalid name",
    program({ envSecrets: ["Not_Ok"] }),
    "spec.envSecrets[0]: is not a valid name of a Secret",
  ),
  stalled(
    "a variable with an equals sign",
    program({ envRefs: { "A=B": secret("s", "k") } }),
    "is not a valid name of an environment variable",
  ),
  stalled(
    "an output of the Stack itself",
    program({ envRefs: { A: { type: "StackOutput", stack: "web", output: "o" } } }),
    "spec.envRefs.A.stack: refers to this Stack itself",
  ),
  stalled(
    "an output of a Stack with an invalid name",
    program({ secretsRef: { a: { type: "StackOutput", stack: "other/web", output: "o" } } }),
    "spec.secretsRef.a.stack: is not a valid name of a Stack",
  ),
  stalled(
    "a prerequisite on itself",
    program({ prerequisites: [{ name: "web" }] }),
    "spec.prerequisites[0].name: refers to this Stack itself",
  ),
  stalled(
    "a prerequisite on itself, in the other spelling",
    program({ prerequisites: [{ type: "Stack", requirement: "web" }] }),
    "spec.prerequisites[0].requirement: refers to this Stack itself",
  ),
  stalled(
    "a prerequisite with an invalid name",
    program({ prerequisites: [{ name: "other/web" }] }),
    "spec.prerequisites[0].name: is not a valid name",
  ),
  stalled(
    "a prerequisite within zero seconds",
    program({ prerequisites: [{ name: "a", succeededWithinDuration: "0s" }] }),
    "succeededWithinDuration: must be greater than zero",
  ),
  stalled(
    "a prerequisite within a negative duration",
    program({ prerequisites: [{ name: "a", requirement: { succeededWithinDuration: "-5m" } }] }),
    "succeededWithinDuration: must be greater than zero",
  ),
  stalled(
    "a number for a requirement",
    program({ prerequisites: [{ name: "a", requirement: 5 }] }),
    "spec.prerequisites[0].requirement: is neither an object nor a string",
  ),
  stalled(
    "a list for a requirement",
    program({ prerequisites: [{ name: "a", requirement: ["b"] }] }),
    "spec.prerequisites[0].requirement: is neither an object nor a string",
  ),
  stalled(
    "configuration without a value",
    program({ config: { a: null } }),
    "spec.config.a: has no value; set a value",
  ),
  stalled("configuration without a key", program({ config: { "": "a" } }), "has an empty key"),
  stalled(
    "a key that is plain and secret",
    program({ config: { a: "b" }, secretsRef: { a: secret("s", "k") } }),
    "spec.secretsRef.a: sets a, which spec.config.a also sets; remove one of them",
  ),
  stalled(
    "a key with a value and a reference",
    program({ config: { a: "b" }, configRef: { a: { name: "c", key: "k" } } }),
    "spec.configRef.a: sets a, which spec.config.a also sets",
  ),
  stalled(
    "a key whose two references differ",
    program({ configRef: { a: { name: "c", key: "k" } }, configRefs: { a: { name: "d", key: "k" } } }),
    "spec.configRefs.a: sets a, which spec.configRef.a also sets",
  ),
  stalled(
    "a key that is secret twice",
    program({ secrets: { a: "b" }, secretsRef: { a: secret("s", "k") } }),
    "spec.secretsRef.a: sets a, which spec.secrets.a also sets",
  ),
  stalled(
    "an unknown security profile",
    template({ securityProfile: "privileged" }),
    "securityProfile: is not a supported security profile; use restricted or baseline",
  ),
  stalled(
    "an unknown pull policy",
    template({ imagePullPolicy: "Sometimes" }),
    "imagePullPolicy: is not a supported pull policy",
  ),
  stalled(
    "an init container named twice",
    template({ initContainers: [container("a"), container("a")] }),
    "initContainers: contains two containers with the same name",
  ),
  stalled(
    "an init container in the workspace and pod templates",
    template({ initContainers: [container("a")], podTemplate: { spec: { initContainers: [container("a")] } } }),
    "initContainers: contains two containers with the same name",
  ),
  stalled(
    "an update window at an hour that does not exist",
    program({ updateWindows: [{ schedule: "0 24 * * *", durationSeconds: 60 }] }),
    "spec.updateWindows[0].schedule: is not a schedule: Invalid value for hour: 24",
  ),
  stalled(
    "an update window that never opens",
    program({ updateWindows: [{ schedule: "0 0 30 2 *", durationSeconds: 60 }] }),
    "spec.updateWindows[0].schedule: no such date exists",
  ),
  stalled(
    "an update window in an unknown time zone",
    program({ updateWindows: [{ schedule: "@daily", durationSeconds: 60, timeZone: "Europe/Atlantis" }] }),
    "spec.updateWindows[0].timeZone: is not the name of a time zone",
  ),
  stalled(
    "Updates of another type",
    program({ updateTemplate: { spec: { type: "destroy" } } }),
    "spec.updateTemplate.spec.type: is determined by the Stack",
  ),
  stalled(
    "Updates of another stack",
    program({ updateTemplate: { spec: { stackName: "prod" } } }),
    "spec.updateTemplate.spec.stackName: is determined by the Stack",
  ),
  stalled(
    "Updates in another workspace",
    program({ updateTemplate: { spec: { workspaceName: "other" } } }),
    "spec.updateTemplate.spec.workspaceName: is determined by the Stack",
  ),
];
