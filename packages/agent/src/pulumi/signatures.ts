/** How state files and events mark values that are not plain JSON. */

/** The property of a secret, an asset, an archive or a reference that says which of them it is. */
export const signatureKey = "4dabf18193072939515e22adb298388d";
export const secretSignature = "1b47061264138c4ac30d75fd1eb44270";
/** A preview's placeholder for an unknown value. */
export const unknownValue = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
