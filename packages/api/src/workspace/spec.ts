/** What a Workspace asks for: a pod with a program in it, and the Pulumi stacks to prepare there. */
import { Type, type Static } from "typebox";

import { anything, atomicList, flag, int32, int64, keyedBy, listOf, optional, text, texts } from "../schema/field.ts";
import { Oidc } from "../shared/oidc.ts";
import { projectInfo } from "../shared/project-info.ts";
import { EnvFrom, EnvVar, PodTemplate, Resources, ServiceTemplate, secretKey } from "./pod.ts";

const GitHubApp = Type.Object(
  {
    appID: secretKey("The App's ID."),
    installationID: secretKey("The ID of the App's installation."),
    privateKey: secretKey("The App's private key, in PEM."),
  },
  { description: "Signs in as an installation of a GitHub App." },
);

const GitAuth = Type.Object(
  {
    sshPrivateKey: optional(secretKey("The private key for ssh.")),
    username: optional(secretKey("The user name for https.")),
    password: optional(secretKey("The password of the user, or of the private key.")),
    token: optional(secretKey("An access token for https.")),
    githubApp: optional(GitHubApp),
    ca: optional(
      secretKey(
        "The certificates of the server's private CA, in PEM, for https. By default the key ca.crt of the Secret of the credentials.",
      ),
    ),
  },
  { description: "How to sign in to the repository." },
);

const GitSource = Type.Object(
  {
    url: optional(text("The address of the repository, https or ssh.")),
    ref: optional(text("The commit, tag or branch to check out.")),
    dir: optional(text("The folder of the program within the repository.")),
    auth: optional(GitAuth),
    shallow: optional(flag("Whether to fetch the one commit without its history.")),
  },
  { description: "Takes the program from a Git repository." },
);

const FluxSource = Type.Object(
  {
    url: optional(text("The address of the artifact.")),
    digest: optional(text("The digest that the artifact must have.")),
    dir: optional(text("The folder of the program within the artifact.")),
  },
  { description: "Takes the program from an artifact that Flux made." },
);

const LocalSource = Type.Object(
  { dir: optional(text("The folder of the program within the image.")) },
  { description: "Takes the program from a folder in the workspace's image." },
);

const ProgramSource = Type.Object(
  {
    name: text("The name of the Program, in the namespace of the workspace."),
    generation: optional(
      int64("The generation of the Program that is meant: a new one is a new revision.", { minimum: 0 }),
    ),
  },
  { description: "Takes the program from a Program object." },
);

const ConfigValueFrom = Type.Object(
  {
    env: optional(text("The environment variable that holds the value.")),
    path: optional(text("The file that holds the value.")),
    json: optional(flag("Whether the text is JSON to be parsed, not a plain string.")),
  },
  { description: "Where in the Pulumi container the value is found." },
);

const ConfigItem = Type.Object(
  {
    key: text("The configuration key."),
    path: optional(flag("Whether the key is a path into a structured value.")),
    value: optional(anything("The value: text, number, boolean, object or list.")),
    valueFrom: optional(ConfigValueFrom),
    secret: optional(flag("Whether the value is encrypted in the stack's configuration.")),
  },
  { description: "One configuration value." },
);

const WorkspaceStack = Type.Object(
  {
    name: text("The name of the Pulumi stack."),
    create: optional(flag("Whether to create the stack when it does not exist.")),
    secretsProvider: optional(text("The provider that encrypts the stack's secrets.")),
    config: optional(listOf(ConfigItem, "Configuration to set before the first run.", keyedBy("key"))),
    environment: optional(texts("Pulumi ESC environments to attach to the stack.", atomicList)),
  },
  { description: "One Pulumi stack." },
);

export const WorkspaceSpec = Type.Object(
  {
    serviceAccountName: optional(text("The service account of the pod.", { default: "default" })),
    securityProfile: optional(
      text("How the pod is confined: restricted (not root) or baseline (root).", { default: "restricted" }),
    ),
    image: optional(text("The image with the Pulumi CLI; the security profile decides when it is left out.")),
    imagePullPolicy: optional(text("When to pull the image: Always, Never or IfNotPresent.")),
    git: optional(GitSource),
    flux: optional(FluxSource),
    local: optional(LocalSource),
    program: optional(ProgramSource),
    projectInfo: optional(projectInfo("Starts with an empty project of this name and runtime, to destroy from state.")),
    envFrom: optional(listOf(EnvFrom, "Sources of many environment variables.", atomicList)),
    env: optional(listOf(EnvVar, "Environment variables, which win over envFrom.", keyedBy("name"))),
    oidc: optional(Oidc),
    resources: optional(Resources),
    podTemplate: optional(PodTemplate),
    serviceTemplate: optional(ServiceTemplate),
    pulumiLogLevel: optional(int32("How much the Pulumi CLI logs; nothing extra when left out.")),
    idleTimeoutSeconds: optional(
      int32("How long the pod is kept after its last Update; the operator's setting when left out, for ever when 0.", {
        minimum: 0,
      }),
    ),
    stacks: optional(
      listOf(
        WorkspaceStack,
        "The Pulumi stacks to prepare in the workspace; Updates work on these alone, or on any stack that exists when none is listed.",
        keyedBy("name"),
      ),
    ),
  },
  { description: "What the workspace is made of." },
);
export type WorkspaceSpec = Static<typeof WorkspaceSpec>;
