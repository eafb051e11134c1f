/** The desired state of a Workspace: a pod with a program, and the Pulumi stacks to prepare in it. */
import { Type, type Static } from "typebox";

import { anything, atomicList, flag, int32, int64, keyedBy, listOf, optional, text, texts } from "../schema/field.ts";
import { Oidc } from "../shared/oidc.ts";
import { projectInfo } from "../shared/project-info.ts";
import { EnvFrom, EnvVar, PodTemplate, Resources, ServiceTemplate, secretKey } from "./pod.ts";

const GitHubApp = Type.Object(
  {
    appID: secretKey("The App's ID."),
    installationID: secretKey("The ID of the App's installation."),
    privateKey: secretKey("The App's private key in PEM format."),
  },
  { description: "Authenticates as an installation of a GitHub App." },
);

const GitAuth = Type.Object(
  {
    sshPrivateKey: optional(secretKey("The private key for SSH.")),
    username: optional(secretKey("The user name for HTTPS.")),
    password: optional(secretKey("The password of the user, or the passphrase of the private key.")),
    token: optional(secretKey("An access token for HTTPS.")),
    githubApp: optional(GitHubApp),
    ca: optional(
      secretKey(
        "The certificates of the server's private CA for HTTPS, in PEM format. Defaults to the key ca.crt in the Secret with the credentials.",
      ),
    ),
  },
  { description: "The credentials for the repository." },
);

const CompareWith = Type.Object(
  {
    commit: Type.String({
      description: "The full hash of the earlier commit.",
      pattern: "^([0-9a-f]{40}|[0-9a-f]{64})$",
    }),
    pathFilters: optional(
      listOf(
        Type.String({ minLength: 1, maxLength: 512 }),
        "Which files count, as globs from the root of the repository, such as infra/**. With a leading !, files are excluded.",
        { maxItems: 64, ...atomicList },
      ),
    ),
  },
  {
    description:
      "Compares the commit that is checked out with an earlier one. If no selected file differs, status.unchangedSince is that commit.",
  },
);

const GitSource = Type.Object(
  {
    url: optional(text("The HTTPS or SSH URL of the repository.")),
    ref: optional(text("The commit, tag or branch to check out.")),
    dir: optional(text("The directory of the program in the repository.")),
    auth: optional(GitAuth),
    shallow: optional(flag("Whether to fetch only the commit, without its history.")),
    compareWith: optional(CompareWith),
  },
  { description: "Reads the program from a Git repository." },
);

const FluxSource = Type.Object(
  {
    url: optional(text("The URL of the artifact.")),
    digest: optional(text("The expected digest of the artifact.")),
    dir: optional(text("The directory of the program in the artifact.")),
  },
  { description: "Reads the program from a Flux artifact." },
);

const LocalSource = Type.Object(
  { dir: optional(text("The directory of the program in the image.")) },
  { description: "Reads the program from a directory in the workspace's image." },
);

const ProgramSource = Type.Object(
  {
    name: text("The name of the Program in the Workspace's namespace."),
    generation: optional(
      int64("The generation of the Program. Each generation is a revision of the program.", { minimum: 0 }),
    ),
  },
  { description: "Reads the program from a Program object." },
);

const ConfigValueFrom = Type.Object(
  {
    env: optional(text("The environment variable with the value.")),
    path: optional(text("The path of the file with the value.")),
    json: optional(flag("Whether to parse the value as JSON. By default, it is a string.")),
  },
  { description: "The source of the value in the Pulumi container." },
);

const ConfigItem = Type.Object(
  {
    key: text("The configuration key."),
    path: optional(flag("Whether the key is a path in a structured value.")),
    value: optional(anything("The value: a string, number, boolean, object or list.")),
    valueFrom: optional(ConfigValueFrom),
    secret: optional(flag("Whether to encrypt the value in the stack's configuration.")),
  },
  { description: "A configuration value." },
);

const WorkspaceStack = Type.Object(
  {
    name: text("The name of the Pulumi stack."),
    create: optional(flag("Whether to create the stack if it does not exist.")),
    secretsProvider: optional(text("The secrets provider that encrypts the stack's secrets.")),
    config: optional(listOf(ConfigItem, "Configuration to set before the first operation.", keyedBy("key"))),
    environment: optional(texts("Pulumi ESC environments to import into the stack's configuration.", atomicList)),
  },
  { description: "A Pulumi stack." },
);

export const WorkspaceSpec = Type.Object(
  {
    serviceAccountName: optional(text("The service account of the pod.", { default: "default" })),
    securityProfile: optional(
      text(
        "The Pod Security Standard that the pod complies with: restricted (runs as non-root) or baseline (runs as root).",
        { default: "restricted" },
      ),
    ),
    image: optional(text("The image with the Pulumi CLI. The default depends on the security profile.")),
    imagePullPolicy: optional(text("The pull policy of the image: Always, Never or IfNotPresent.")),
    git: optional(GitSource),
    flux: optional(FluxSource),
    local: optional(LocalSource),
    program: optional(ProgramSource),
    projectInfo: optional(
      projectInfo("Uses an empty project with this name and runtime, to destroy a stack from its state."),
    ),
    envFrom: optional(listOf(EnvFrom, "ConfigMaps and Secrets whose keys become environment variables.", atomicList)),
    env: optional(listOf(EnvVar, "Environment variables. They take precedence over envFrom.", keyedBy("name"))),
    oidc: optional(Oidc),
    resources: optional(Resources),
    podTemplate: optional(PodTemplate),
    serviceTemplate: optional(ServiceTemplate),
    pulumiLogLevel: optional(int32("The log verbosity of the Pulumi CLI. By default, it writes no debug logs.")),
    idleTimeoutSeconds: optional(
      int32(
        "The time in seconds to keep the pod after its last Update; 0 to keep it indefinitely. Defaults to the operator's setting.",
        {
          minimum: 0,
        },
      ),
    ),
    stacks: optional(
      listOf(
        WorkspaceStack,
        "The Pulumi stacks to prepare in the workspace. If set, Updates may use only these stacks; otherwise, any existing stack.",
        keyedBy("name"),
      ),
    ),
  },
  { description: "The desired state of the Workspace." },
);
export type WorkspaceSpec = Static<typeof WorkspaceSpec>;
