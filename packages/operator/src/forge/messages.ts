/** The texts about credentials of forges. */
import type { ForgeType } from "@pko/forge";

export const keysMissing = (secret: string): string =>
  `Secret ${secret} has neither the key token, nor appID, installationID and privateKey, nor username and password; add the keys that the forge requires.`;

export const tokenInvalid = (secret: string): string =>
  `The key token of Secret ${secret} contains characters that a token cannot contain, such as a space or a line break; correct it.`;

export const appElsewhere = (type: ForgeType): string =>
  `${type} has no GitHub Apps; use a Secret with the key token, or with username and password.`;
