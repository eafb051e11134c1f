/** A Pulumi YAML program. Resources and options are preserved as they are: Pulumi validates them. */
import { Type, type Static } from "typebox";

import { anything, flag, keepUnknown, mapOf, optional, text, texts } from "../schema/field.ts";

const expression = (description: string) => anything(description);

const Configuration = Type.Object(
  {
    type: optional(
      text("The type of the value: String, Number, List<Number>, List<String> or another type of Pulumi YAML."),
    ),
    default: optional(expression("The default value.")),
    secret: optional(flag("Whether the value is a secret.")),
  },
  { description: "A configuration value of the program.", ...keepUnknown },
);

const CustomTimeouts = Type.Object(
  {
    create: optional(text("The timeout of a create operation.")),
    update: optional(text("The timeout of an update operation.")),
    delete: optional(text("The timeout of a delete operation.")),
  },
  { description: "Timeouts for operations on the resource." },
);

const ResourceOptions = Type.Object(
  {
    additionalSecretOutputs: optional(texts("Outputs to treat as secrets.")),
    aliases: optional(expression("Previous identities of the resource, so that a rename does not replace it.")),
    customTimeouts: optional(CustomTimeouts),
    deleteBeforeReplace: optional(flag("Whether to delete the resource before creating its replacement.")),
    dependsOn: optional(expression("One or more resources that must be created first.")),
    ignoreChanges: optional(texts("Properties whose changes are ignored.")),
    import: optional(text("The ID of an existing resource to import.")),
    parent: optional(expression("The parent resource.")),
    protect: optional(expression("Whether to protect the resource from deletion.")),
    provider: optional(expression("The provider resource to use.")),
    providers: optional(expression("The provider resources for child resources, by package.")),
    version: optional(text("The version of the provider plugin.")),
  },
  { description: "The resource options.", ...keepUnknown },
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
    properties: optional(expression("The properties of the resource, or an expression that returns them.")),
    options: optional(ResourceOptions),
    get: optional(Getter),
  },
  { description: "A resource.", ...keepUnknown },
);

export const ProgramSpec = Type.Object(
  {
    name: optional(text("The name of the Pulumi project. Defaults to the name of the Program object.")),
    description: optional(text("A description of the project.")),
    configuration: optional(mapOf(Configuration, "The configuration values of the program by key.")),
    config: optional(
      mapOf(expression("A default value, or a type and a default value."), "The project's configuration by key."),
    ),
    variables: optional(mapOf(expression("The value."), "Intermediate values by name.")),
    resources: optional(mapOf(Resource, "The resources by name.")),
    outputs: optional(mapOf(expression("The value."), "The stack's outputs by name.")),
    packages: optional(
      mapOf(
        expression("A version, a source, or an object with version, source and parameters."),
        "The packages to install before the program runs, by name.",
      ),
    ),
    components: optional(mapOf(expression("A component."), "The components that the program defines, by name.")),
    pulumi: optional(
      Type.Object(
        { requiredVersion: optional(text("The required version of the Pulumi CLI, such as >=3.100.0.")) },
        { description: "Requirements of the program.", ...keepUnknown },
      ),
    ),
  },
  { description: "The program in Pulumi YAML." },
);
export type ProgramSpec = Static<typeof ProgramSpec>;
