/** What is reported about the WorkspaceClass of a namespace: by Stacks, and by Workspaces that users create. */

export const classConflict = (namespace: string, names: readonly string[]): string =>
  `The WorkspaceClasses ${listed(names)} all select the namespace ${namespace}, and at most one may. ` +
  "Nothing starts, because it is unknown which limits and policies apply. Change the namespaceSelector of all but one, or the labels of the namespace.";

const listed = (names: readonly string[]): string => `${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""}`;
