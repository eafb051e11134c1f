/** A Pulumi YAML program. What is in its resources and options is Pulumi's language: kept whole, and checked by Pulumi. */
import { Type, type Static } from "typebox";

import { anything, flag, keepUnknown, mapOf, optional, text, texts } from "../schema/field.ts";

const expression = (description: string) => anything(description);

const Configuration = Type.Object(
  {
    type: optional(
      text("The type of the value: String, Number, List<Number>, List<String> or another of Pulumi YAML."),
    ),
    default: optional(expression("The value when the stack's configuration has none.")),
    secret: optional(flag("Whether the value is a secret.")),
  },
  { description: "One configuration value that the program takes.", ...keepUnknown },
);

const CustomTimeouts = Type.Object(
  {
    create: optional(text("The time allowed for a creation.")),
    update: optional(text("The time allowed for an update.")),
    delete: optional(text("The time allowed for a deletion.")),
  },
  { description: "How long operations on the resource may take." },
);

const ResourceOptions = Type.Object(
  {
    additionalSecretOutputs: optional(texts("Outputs to treat as secrets.")),
    aliases: optional(expression("Former identities of the resource, so that renaming does not replace it.")),
    customTimeouts: optional(CustomTimeouts),
    deleteBeforeReplace: optional(flag("Whether a replacement deletes the old resource first.")),
    dependsOn: optional(expression("The resource, or resources, that must be there first.")),
    ignoreChanges: optional(texts("Properties whose changes are ignored.")),
    import: optional(text("The ID of an existing resource to adopt.")),
    parent: optional(expression("The resource that this one belongs to.")),
    protect: optional(expression("Whether the resource must not be deleted.")),
    provider: optional(expression("The provider resource to use.")),
    providers: optional(expression("The provider resources that children use, by package.")),
    version: optional(text("The version of the provider plugin.")),
  },
  { description: "How Pulumi treats the resource.", ...keepUnknown },
);

const Getter = Type.Object(
  {
    id: text("The ID of the existing resource.", { minLength: 1 }),
    state: optional(mapOf(expression("A property."), "Known properties that help to find the resource.")),
  },
  { description: "Reads an existing resource instead of creating one." },
);

const Resource = Type.Object(
  {
    type: text("The type token of the resource, such as aws:s3:Bucket.", { minLength: 1 }),
    properties: optional(expression("The properties of the resource, or one expression that gives them all.")),
    options: optional(ResourceOptions),
    get: optional(Getter),
  },
  { description: "One resource.", ...keepUnknown },
);

export const ProgramSpec = Type.Object(
  {
    name: optional(text("The name of the Pulumi project; the Program's own name when left out.")),
    description: optional(text("What the project is for.")),
    configuration: optional(mapOf(Configuration, "The configuration that the program takes, by key.")),
    config: optional(
      mapOf(expression("A default, or the type and default of a value."), "The project's configuration, by key."),
    ),
    variables: optional(mapOf(expression("The value."), "Intermediate values by name.")),
    resources: optional(mapOf(Resource, "The resources by name.")),
    outputs: optional(mapOf(expression("The value."), "The stack's outputs by name.")),
    packages: optional(
      mapOf(
        expression("A version, an address, or both and parameters."),
        "Packages to install before the program runs, by name.",
      ),
    ),
    components: optional(mapOf(expression("A component."), "Components that the program defines, by name.")),
    pulumi: optional(
      Type.Object(
        { requiredVersion: optional(text("The versions of the CLI that will do, such as >=3.100.0.")) },
        { description: "What the program asks of Pulumi.", ...keepUnknown },
      ),
    ),
  },
  { description: "The program, in Pulumi YAML." },
);
export type ProgramSpec = Static<typeof ProgramSpec>;
