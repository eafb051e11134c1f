/**
 * Where a Stack's program comes from: exactly one of Git, Flux, a Program, and a folder in the workspace's image; or the
 * workspace template brings it, as by an init container.
 */
import { Type } from "typebox";

import { given, sentence, type CelRule } from "../schema/cel.ts";
import { flag, optional, text } from "../schema/field.ts";
import { credential } from "./reference.ts";
import { stackWording as wording } from "./wording.ts";

const GitAuth = Type.Object(
  {
    accessToken: optional(credential("An access token for https.")),
    sshAuth: optional(
      Type.Object(
        {
          sshPrivateKey: credential("The private key."),
          password: optional(credential("The password of the private key.")),
        },
        { description: "A key for ssh." },
      ),
    ),
    basicAuth: optional(
      Type.Object(
        { userName: credential("The user name."), password: credential("The password.") },
        { description: "A user and password for https." },
      ),
    ),
    githubApp: optional(
      Type.Object(
        {
          appID: credential("The App's ID."),
          installationID: credential("The ID of the App's installation."),
          privateKey: credential("The App's private key, in PEM."),
        },
        { description: "An installation of a GitHub App." },
      ),
    ),
  },
  {
    description:
      "How to sign in to the repository: one of the ways below; of several, sshAuth wins over accessToken, githubApp and basicAuth.",
  },
);

const gitFields = {
  projectRepo: optional(text("The Git repository of the program, by https or ssh.")),
  branch: optional(text("The branch to follow, as main or refs/heads/main; refs/tags/NAME follows a tag.")),
  tag: optional(text("The tag to follow, as v1.0 or refs/tags/v1.0.")),
  commit: optional(text("The one commit to deploy, by its full hash.")),
  repoDir: optional(text("The folder of the program within the repository.")),
  shallow: optional(flag("Whether to fetch the one commit without its history.")),
  gitAuth: optional(GitAuth),
  gitAuthSecret: optional(
    text("Deprecated, use gitAuth: a Secret with accessToken, sshPrivateKey and password, or username and password."),
  ),
};

const FluxSource = Type.Object(
  {
    sourceRef: Type.Object(
      {
        apiVersion: text("The API version of the source."),
        kind: text("The kind of the source, such as GitRepository, OCIRepository or Bucket."),
        name: text("The name of the source, in the Stack's namespace."),
      },
      { description: "The Flux source to follow." },
    ),
    dir: optional(text("The folder of the program within the source.")),
  },
  { description: "Takes the program from a Flux source." },
);

const ProgramRef = Type.Object(
  { name: text("The name of the Program, in the Stack's namespace.") },
  { description: "Takes the program from a Program object." },
);

export const sourceFields = {
  ...gitFields,
  fluxSource: optional(FluxSource),
  programRef: optional(ProgramRef),
};

const inTemplate = (field: string): string =>
  `has(self.workspaceTemplate) && has(self.workspaceTemplate.spec) && has(self.workspaceTemplate.spec.${field})`;

const atMostOne = (...facts: readonly string[]): string => `[${facts.join(", ")}].filter(fact, fact).size() <= 1`;

const revision = ["branch", "tag", "commit"].map((field) => given(field));
const anyRevision = revision.map((fact) => `(${fact})`).join(" || ");
const repository = given("projectRepo");

/**
 * A workspace template may also patch the Git or Flux source that the Stack generates, so there they count as a source
 * only where the Stack names none. What a pod template holds is not in the schema: the normaliser looks into it.
 */
export const sourceRules: readonly CelRule[] = [
  {
    rule: atMostOne(repository, "has(self.fluxSource)", "has(self.programRef)", inTemplate("local")),
    message: sentence(wording.severalSources),
  },
  {
    rule: [
      `(${repository})`,
      "has(self.fluxSource)",
      "has(self.programRef)",
      ...["local", "git", "flux", "podTemplate"].map((field) => `(${inTemplate(field)})`),
      `(${inTemplate("initContainers")} && self.workspaceTemplate.spec.initContainers.size() > 0)`,
      // Said by the next rules.
      anyRevision,
    ].join(" || "),
    message: sentence(wording.noSource),
  },
  { rule: atMostOne(...revision), message: sentence(wording.severalRevisions), fieldPath: ".branch" },
  {
    rule: `!(${repository}) || ${anyRevision}`,
    message: sentence(wording.noRevision),
    fieldPath: ".branch",
    reason: "FieldValueRequired",
  },
  {
    rule: `(${repository}) || !(${anyRevision})`,
    message: sentence(wording.revisionWithoutRepository),
    fieldPath: ".projectRepo",
    reason: "FieldValueRequired",
  },
];
