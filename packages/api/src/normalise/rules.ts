/** Small facts about texts that come from users and end up in names, paths and command lines. */

const longestName = 253;

/** The name that a Secret, a ConfigMap or most other objects can have. */
export function isObjectName(name: string): boolean {
  return name.length <= longestName && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) && !name.includes("..");
}

/** A key within a Secret or ConfigMap. It becomes a file's name, so it must not lead elsewhere. */
export function isDataKey(key: string): boolean {
  return key.length <= longestName && /^[-._a-zA-Z0-9]+$/.test(key) && key !== "." && !key.startsWith("..");
}

/** The name of an environment variable: printable, without an equals sign. */
export function isEnvName(name: string): boolean {
  return /^[\u0020-\u007E]+$/.test(name) && !name.includes("=");
}

/** A name after which a Service can be called. */
export function isServicePrefix(name: string): boolean {
  return /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name);
}

// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const control = /[\u0000-\u001F\u007F]/;

/** Safe as one argument of a command: not an option, nothing that breaks a line. */
export function isArgument(value: string): boolean {
  return value !== "" && !value.startsWith("-") && !control.test(value);
}

/** A folder below a root, without slashes at its ends; "" is the root, undefined a folder outside. */
export function folderBelowRoot(path: string): string | undefined {
  if (control.test(path)) return undefined;
  const steps: string[] = [];
  for (const step of path.split("/")) {
    if (step === "" || step === ".") continue;
    if (step !== "..") steps.push(step);
    else if (steps.pop() === undefined) return undefined;
  }
  return steps.join("/");
}
