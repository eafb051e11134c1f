/** The building blocks of the documents of -o json. */
import { Type, type TObject, type TProperties } from "typebox";

export const documentVersion = "cli.pulumi.com/v1";

export const text = (description: string) => Type.String({ description });
export const choice = <T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: "string", enum: [...values], description });
export const optionalText = (description: string) => Type.Optional(text(description));

export function document<Kind extends string, Fields extends TProperties>(
  kind: Kind,
  description: string,
  fields: Fields,
) {
  return Type.Object(
    { apiVersion: Type.Literal(documentVersion), kind: Type.Literal(kind), ...fields },
    { description, additionalProperties: false },
  );
}

export const part = <Fields extends TProperties>(fields: Fields, description: string): TObject<Fields> =>
  Type.Object(fields, { description, additionalProperties: false });

export const HiddenPart = part(
  { what: text("What could not be read."), permission: text("The permission that is missing.") },
  "Something that the user does not have permission to read.",
);
