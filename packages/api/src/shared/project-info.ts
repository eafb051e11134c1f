/** What is needed of a Pulumi project to destroy its stack after the source has been deleted. */
import { Type, type Static } from "typebox";

import { text } from "../schema/field.ts";

export const ProjectInfo = Type.Object({
  name: text("The project's name, from Pulumi.yaml."),
  runtime: text("The project's language runtime, from Pulumi.yaml."),
});
export type ProjectInfo = Static<typeof ProjectInfo>;

export const projectInfo = (description: string) => Type.Object(ProjectInfo.properties, { description });
