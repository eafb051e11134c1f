/** The WorkspaceClass of the Stack's namespace. */
import { classConflict as conflict } from "../../shared/class-messages.ts";

export const labelsOfNamespace = "the labels of the namespace";
export const namespaceUnknown = "The labels of the namespace are being read, to find its WorkspaceClass.";

export const classConflict = (namespace: string, names: readonly string[]): string =>
  `${conflict(namespace, names)} Running updates continue.`;
