/** Invalid Stacks, each with a part of its error message. */

export interface BadStack {
  readonly what: string;
  readonly stack: object;
  readonly expected: string;
}

type Fields = Readonly<Record<string, unknown>>;

const object = (spec: Fields | undefined, metadata: Fields = {}) => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "web", namespace: "default", ...metadata },
  ...(spec && { spec }),
});

const bad = (what: string, spec: Fields, expected: string): BadStack => ({ what, stack: object(spec), expected });

const program = { programRef: { name: "web" } };
const flux = { fluxSource: { sourceRef: { apiVersion: "source.toolkit.fluxcd.io/v1", kind: "Bucket", name: "b" } } };
const git = { projectRepo: "https://host/repo", branch: "main" };
const local = { workspaceTemplate: { spec: { local: { dir: "/app" } } } };
const sha = "03658b5514f08970f350618a6e6fdf1bd75f45d0";

const from = (source: Fields) => (fields: Fields) => ({ stack: "dev", ...source, ...fields });
const fromProgram = from(program);
const fromGit = from(git);

const secret = (fields: Fields = {}) => ({ type: "Secret", secret: { name: "s", key: "k", ...fields } });

const forge = { type: "GitHub", secretRef: { name: "forge" } };

const several = "the program has more than one source; keep only one of projectRepo, fluxSource, programRef";
const noSource = "the program has no source; set one of projectRepo, fluxSource, programRef";
const noRevision = "projectRepo requires a revision; set one of branch, tag and commit";
const severalRevisions = "branch, tag and commit are mutually exclusive; keep only one of them";
const noRepository = "require a Git repository; set projectRepo";

const sources: readonly BadStack[] = [
  bad("no source", { stack: "dev" }, noSource),
  bad("an empty repository", { stack: "dev", projectRepo: "" }, noSource),
  bad("a template without a source", { stack: "dev", workspaceTemplate: { spec: { image: "i" } } }, noSource),
  bad(
    "an empty list of init containers",
    { stack: "dev", workspaceTemplate: { spec: { initContainers: [] } } },
    noSource,
  ),
  bad("Git and Flux", fromGit(flux), several),
  bad("Git and a Program", fromGit(program), several),
  bad("Git and a folder in the image", fromGit(local), several),
  bad("Flux and a Program", from(flux)(program), several),
  bad("Flux and a folder in the image", from(flux)(local), several),
  bad("a Program and a folder in the image", fromProgram(local), several),
  bad("all four sources", { stack: "dev", ...git, ...flux, ...program, ...local }, several),
  bad("a repository without a revision", { stack: "dev", projectRepo: "https://host/repo" }, noRevision),
  bad("a repository with empty revisions", fromGit({ branch: "", commit: "", tag: "" }), noRevision),
  bad("a branch and a commit", fromGit({ commit: sha }), severalRevisions),
  bad("a branch and a tag", fromGit({ tag: "v1" }), severalRevisions),
  bad("a tag and a commit", fromGit({ branch: "", tag: "v1", commit: sha }), severalRevisions),
  bad("a branch, a tag and a commit", fromGit({ tag: "v1", commit: sha }), severalRevisions),
  bad("a branch and a Program", fromProgram({ branch: "main" }), noRepository),
  bad("a commit and a Flux source", from(flux)({ commit: sha }), noRepository),
  bad("a tag without a repository", { stack: "dev", tag: "v1" }, noRepository),
  bad("a branch and a folder in the image", from(local)({ branch: "main" }), noRepository),
  bad("path filters and a Program", fromProgram({ pathFilters: ["infra/**"] }), noRepository),
  bad("pull requests and a Program", fromProgram({ pullRequests: forge }), noRepository),
  bad(
    "labels of pull requests at Bitbucket",
    fromGit({ pullRequests: { type: "Bitbucket", secretRef: { name: "s" }, labels: ["preview"] } }),
    "pull requests at Bitbucket have no labels",
  ),
  bad(
    "labels of pull requests at the Bitbucket of the report",
    fromGit({
      report: { type: "BitbucketDataCenter", secretRef: { name: "s" } },
      pullRequests: { labels: ["preview"] },
    }),
    "pull requests at Bitbucket have no labels",
  ),
  bad("pull requests without a forge", fromGit({ pullRequests: {} }), "pullRequests name no forge"),
  bad(
    "pull requests of a Stack that follows a tag",
    fromGit({ branch: "", tag: "v1", pullRequests: forge }),
    "pullRequests need to know the target branch",
  ),
  ...["/infra/**", "./infra/**", "!/infra/**", "../infra/**"].map((filter) =>
    bad(`the path filter ${filter}`, fromGit({ pathFilters: ["docs/**", filter] }), "relative to the root"),
  ),
  ...["infra/", "!infra/", "infra/..", "infra//a", "infra/./a", "[ab", "a[bc", "{a,b", "infra/{a,b"].map((filter) =>
    bad(`the path filter ${filter}`, fromGit({ pathFilters: ["docs/**", filter] }), "matches no file"),
  ),
];

const wrongReferences: readonly (readonly [string, Fields, string])[] = [
  ["of an unknown type", { type: "Vault" }, "is not a supported type of reference"],
  [
    "of an empty type",
    { type: "" },
    "is not a supported type of reference; use Literal, Secret, ConfigMap or StackOutput",
  ],
  [
    "of a type in lower case",
    { type: "secret", secret: { name: "s", key: "k" } },
    "is not a supported type of reference",
  ],
  [
    "to the operator's environment",
    { type: "Env", env: { name: "HOME" } },
    "type Env is not supported, because it would read the operator's own",
  ],
  [
    "to the operator's files",
    { type: "FS", filesystem: { path: "/etc" } },
    "type FS is not supported, because it would read the operator's own",
  ],
  ["of type Literal without a literal", { type: "Literal" }, "type Literal requires a literal; set literal.value"],
  [
    "of type Secret without a Secret",
    { type: "Secret" },
    "type Secret requires a Secret and a key; set secret.name and secret.key",
  ],
  [
    "of type Secret with a literal",
    { type: "Secret", literal: { value: "v" } },
    "type Secret requires a Secret and a key",
  ],
  ["to a Secret without a name", secret({ name: "" }), "type Secret requires a Secret and a key"],
  ["to a Secret without a key", secret({ key: "" }), "type Secret requires a Secret and a key"],
  [
    "of type ConfigMap without a ConfigMap",
    { type: "ConfigMap" },
    "type ConfigMap requires a ConfigMap and a key; set configMap.name and configMap.key",
  ],
  [
    "to a ConfigMap without a key",
    { type: "ConfigMap", configMap: { name: "c", key: "" } },
    "requires a ConfigMap and a key",
  ],
  [
    "of type StackOutput without a Stack",
    { type: "StackOutput", output: "o" },
    "requires a Stack and an output; set stack and output",
  ],
  ["of type StackOutput without an output", { type: "StackOutput", stack: "s" }, "requires a Stack and an output"],
  [
    "to an output of a Stack without a name",
    { type: "StackOutput", stack: "", output: "o" },
    "requires a Stack and an output",
  ],
];

const references: readonly BadStack[] = ["envRefs", "secretsRef"].flatMap((map) =>
  wrongReferences.map(([what, reference, expected]) =>
    bad(`${map} ${what}`, fromProgram({ [map]: { A: reference } }), expected),
  ),
);

const literal = { type: "Literal", literal: { value: "v" } };
const onlySecrets = "Git credentials must come from a Secret; store the value in a Secret";
const auth = (what: string, gitAuth: Fields, expected: string) => bad(what, fromGit({ gitAuth }), expected);
const app = (fields: Fields) => ({
  githubApp: { appID: secret(), installationID: secret(), privateKey: secret(), ...fields },
});

const credentials: readonly BadStack[] = [
  auth("a token in plain text", { accessToken: literal }, onlySecrets),
  auth("a token from the environment", { accessToken: { type: "Env", env: { name: "T" } } }, onlySecrets),
  auth("a token from a file", { accessToken: { type: "FS", filesystem: { path: "/t" } } }, onlySecrets),
  auth("a token without a Secret", { accessToken: { type: "Secret" } }, "type Secret requires a Secret and a key"),
  auth("an ssh key in plain text", { sshAuth: { sshPrivateKey: literal } }, onlySecrets),
  auth("a key's password in plain text", { sshAuth: { sshPrivateKey: secret(), password: literal } }, onlySecrets),
  auth("a user name in plain text", { basicAuth: { userName: literal, password: secret() } }, onlySecrets),
  auth("a password in plain text", { basicAuth: { userName: secret(), password: literal } }, onlySecrets),
  auth("the ID of an App in plain text", app({ appID: literal }), onlySecrets),
  auth("an App's installation in plain text", app({ installationID: literal }), onlySecrets),
  auth("an App's key in plain text", app({ privateKey: literal }), onlySecrets),
];

const foreign = secret({ namespace: "other" });
const elsewhere = "a Stack can read Secrets only in its own namespace; copy the Secret to the Stack's namespace";

const otherNamespaces: readonly BadStack[] = [
  bad(
    "a variable from another namespace",
    fromProgram({ envRefs: { A: foreign } }),
    `spec.envRefs.A.secret.namespace: ${elsewhere}`,
  ),
  bad("a secret value from another namespace", fromProgram({ secretsRef: { a: foreign } }), elsewhere),
  auth("a token from another namespace", { accessToken: foreign }, elsewhere),
  auth("an ssh key from another namespace", { sshAuth: { sshPrivateKey: foreign } }, elsewhere),
  auth(
    "a key's password from another namespace",
    { sshAuth: { sshPrivateKey: secret(), password: foreign } },
    elsewhere,
  ),
  auth("a user name from another namespace", { basicAuth: { userName: foreign, password: secret() } }, elsewhere),
  auth("a password from another namespace", { basicAuth: { userName: secret(), password: foreign } }, elsewhere),
  auth("an App's ID from another namespace", app({ appID: foreign }), elsewhere),
  auth("an App's installation from another namespace", app({ installationID: foreign }), elsewhere),
  auth("an App's key from another namespace", app({ privateKey: foreign }), elsewhere),
];

const after = (what: string, prerequisite: unknown, expected: string) =>
  bad(what, fromProgram({ prerequisites: [prerequisite] }), expected);
const nameless = "the prerequisite does not name a Stack; set name: NAME, or type: Stack and requirement: NAME";
const noDuration = "is not a valid duration; use numbers with units, such as 90s, 30m or 1h30m";

const prerequisites: readonly BadStack[] = [
  after("an empty prerequisite", {}, nameless),
  after("a prerequisite with an empty name", { name: "" }, nameless),
  after("a prerequisite of type Stack without a name", { type: "Stack" }, nameless),
  after("a prerequisite of type Stack with a duration for a name", { type: "Stack", requirement: {} }, nameless),
  after("a prerequisite with a requirement alone", { requirement: "cluster" }, nameless),
  after(
    "a prerequisite named twice",
    { name: "a", type: "Stack", requirement: "b" },
    "names a Stack twice; keep either name",
  ),
  after(
    "a prerequisite of another type",
    { type: "Program", requirement: "a" },
    "is not a supported type of prerequisite",
  ),
  after("a duration without a unit", { name: "a", succeededWithinDuration: "30" }, noDuration),
  after("a duration in days", { type: "Stack", requirement: "a", succeededWithinDuration: "1d" }, noDuration),
  after("an empty duration", { name: "a", succeededWithinDuration: "" }, noDuration),
  after("a duration in words", { name: "a", requirement: { succeededWithinDuration: "soon" } }, noDuration),
  bad("a time to live in words", fromProgram({ updateTemplate: { spec: { ttlAfterCompleted: "1 day" } } }), noDuration),
];

const oidc: readonly BadStack[] = [
  bad(
    "a team and a user",
    fromProgram({ oidc: { team: "a", user: "b" } }),
    "team and user are mutually exclusive; remove one of them",
  ),
  bad(
    "an administrator of a team",
    fromProgram({ oidc: { team: "a", admin: true } }),
    "admin is valid only for a token of",
  ),
];

const metadata: readonly BadStack[] = [
  {
    what: "a name of 43 characters",
    stack: object(fromProgram({}), { name: "a".repeat(43) }),
    expected: "metadata.name: must have at most 42 characters",
  },
  {
    what: "no source, in the older version of the API",
    stack: { ...object({ stack: "dev" }), apiVersion: "pulumi.com/v1alpha1" },
    expected: noSource,
  },
  bad(
    "a negative resync",
    fromProgram({ resyncFrequencySeconds: -1 }),
    "must not be negative; set a number of seconds",
  ),
];

const noSchedule = "is not a schedule; set minute, hour, day of month, month and day of week";
const inWindow = (what: string, schedule: string) =>
  bad(what, fromProgram({ updateWindows: [{ schedule, durationSeconds: 3600 }] }), noSchedule);

const windows: readonly BadStack[] = [
  inWindow("a schedule in words", "every night"),
  inWindow("a schedule of four fields", "0 22 * *"),
  inWindow("a schedule with seconds", "0 0 22 * * *"),
  inWindow("a schedule with a time zone", "TZ=Asia/Tokyo 0 22 * * *"),
  inWindow("a schedule for the last day of the month", "0 22 L * *"),
  inWindow("an unknown macro", "@sometimes"),
];

/** Rejected by our own rules. */
export const rejectedStacks: readonly BadStack[] = [
  ...windows,
  ...oidc,
  ...sources,
  ...references,
  ...credentials,
  ...otherNamespaces,
  ...prerequisites,
  ...metadata,
];

const template = (spec: Fields) => fromProgram({ workspaceTemplate: { spec } });

/** Rejected by the schema, with the API server's message. */
export const misshapenStacks: readonly BadStack[] = [
  { what: "no spec", stack: object(undefined), expected: "spec: is required" },
  bad("no stack", program, "spec.stack: Required value"),
  bad("a number for a stack", { ...program, stack: 1 }, "spec.stack: Invalid value"),
  bad("a list for a repository", fromGit({ projectRepo: ["a"] }), "spec.projectRepo: Invalid value"),
  bad("a string for a list of targets", fromProgram({ targets: "urn:a" }), "spec.targets: Invalid value"),
  bad("a string for a flag", fromProgram({ preview: "yes" }), "spec.preview: Invalid value"),
  bad(
    "a string for a number",
    fromProgram({ resyncFrequencySeconds: "60" }),
    "spec.resyncFrequencySeconds: Invalid value",
  ),
  bad(
    "a fraction of a second",
    fromProgram({ resyncFrequencySeconds: 1.5 }),
    "spec.resyncFrequencySeconds: Invalid value",
  ),
  bad("a string for configuration", fromProgram({ config: "a=b" }), "spec.config: Invalid value"),
  bad("a list for configuration", fromProgram({ config: ["a"] }), "spec.config: Invalid value"),
  bad("a list of variables", fromProgram({ envRefs: [] }), "spec.envRefs: Invalid value"),
  bad("a string for ESC environments", fromProgram({ environment: "prod" }), "spec.environment: Invalid value"),
  bad("a number for a secret value", fromProgram({ secrets: { a: 1 } }), "spec.secrets.a: Invalid value"),
  bad("a reference without a type", fromProgram({ envRefs: { A: {} } }), "spec.envRefs.A.type: Required value"),
  bad(
    "a literal without a value",
    fromProgram({ envRefs: { A: { type: "Literal", literal: {} } } }),
    "spec.envRefs.A.literal.value: Required value",
  ),
  bad(
    "a Secret without a key",
    fromProgram({ envRefs: { A: { type: "Secret", secret: { name: "s" } } } }),
    "spec.envRefs.A.secret.key: Required value",
  ),
  bad(
    "a ConfigMap without a name",
    fromProgram({ envRefs: { A: { type: "ConfigMap", configMap: { key: "k" } } } }),
    "spec.envRefs.A.configMap.name: Required value",
  ),
  bad(
    "a ConfigMap's value without a key",
    fromProgram({ configRef: { a: { name: "c" } } }),
    "spec.configRef.a.key: Required value",
  ),
  bad(
    "a string for the flag json",
    fromProgram({ configRefs: { a: { name: "c", key: "k", json: "yes" } } }),
    "spec.configRefs.a.json: Invalid value",
  ),
  bad("a Program without a name", { stack: "dev", programRef: {} }, "spec.programRef.name: Required value"),
  bad("Flux without a source", { stack: "dev", fluxSource: {} }, "spec.fluxSource.sourceRef: Required value"),
  bad(
    "a Flux source without a kind",
    { stack: "dev", fluxSource: { sourceRef: { apiVersion: "a/v1", name: "b" } } },
    "spec.fluxSource.sourceRef.kind: Required value",
  ),
  auth("SSH auth without a key", { sshAuth: {} }, "spec.gitAuth.sshAuth.sshPrivateKey: Required value"),
  auth(
    "basic auth without a password",
    { basicAuth: { userName: secret() } },
    "spec.gitAuth.basicAuth.password: Required value",
  ),
  auth("an App without an installation", app({ installationID: undefined }), "installationID: Required value"),
  bad(
    "an unknown reclaim policy",
    fromProgram({ workspaceReclaimPolicy: "Keep" }),
    "spec.workspaceReclaimPolicy: Unsupported",
  ),
  bad("a string for prerequisites", fromProgram({ prerequisites: "a" }), "spec.prerequisites: Invalid value"),
  after(
    "a number for a duration",
    { name: "a", requirement: { succeededWithinDuration: 30 } },
    "succeededWithinDuration: Invalid",
  ),
  bad(
    "a variable without a name",
    template({ env: [{ value: "v" }] }),
    "spec.workspaceTemplate.spec.env[0].name: Required",
  ),
  bad(
    "a variable from a Secret without a key",
    template({ env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s" } } }] }),
    "secretKeyRef.key: Required value",
  ),
  bad(
    "a quantity in words",
    template({ resources: { limits: { cpu: "lots" } } }),
    "resources.limits.cpu: Invalid value",
  ),
  bad(
    "a string for init containers",
    template({ initContainers: "a" }),
    "spec.workspaceTemplate.spec.initContainers: Invalid",
  ),
  bad("a string for a pod", template({ podTemplate: { spec: "a" } }), "podTemplate.spec: Invalid value"),
  bad(
    "a string for parallelism",
    fromProgram({ updateTemplate: { spec: { parallel: "4" } } }),
    "spec.parallel: Invalid value",
  ),
  bad(
    "too many prerequisites",
    fromProgram({ prerequisites: Array.from({ length: 1001 }, (_, index) => ({ name: `s${index}` })) }),
    "1000 items",
  ),
];

/** Rejected by strict validation, which kubectl requests, because of unknown fields. */
export const misspelledStacks: readonly BadStack[] = [
  bad("a misspelled field", fromProgram({ destroyOnFinalise: true }), 'unknown field "spec.destroyOnFinalise"'),
  bad(
    "a field of another reference",
    fromProgram({ envRefs: { A: { ...literal, vault: "v" } } }),
    "spec.envRefs.A.vault",
  ),
  bad(
    "the namespace of a Flux source",
    from({ fluxSource: { sourceRef: { ...flux.fluxSource.sourceRef, namespace: "n" } } })({}),
    "sourceRef.namespace",
  ),
  bad(
    "the namespace of a Program",
    { stack: "dev", programRef: { name: "p", namespace: "n" } },
    "spec.programRef.namespace",
  ),
  bad(
    "the namespace of a prerequisite",
    fromProgram({ prerequisites: [{ name: "a", namespace: "n" }] }),
    "prerequisites[0].namespace",
  ),
  bad("a misspelled field of the template", template({ imag: "i" }), "spec.workspaceTemplate.spec.imag"),
  auth("a misspelled kind of credentials", { token: secret() }, "spec.gitAuth.token"),
];
