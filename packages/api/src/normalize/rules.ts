/** Checks of strings from users that become names, paths and command-line arguments. */

const maxNameLength = 253;

/** A valid name of a Secret, a ConfigMap and most other objects. */
export function isObjectName(name: string): boolean {
  return name.length <= maxNameLength && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) && !name.includes("..");
}

/** A valid key in a Secret or ConfigMap. It becomes a file name, so it must not be a path to elsewhere. */
export function isDataKey(key: string): boolean {
  return key.length <= maxNameLength && /^[-._a-zA-Z0-9]+$/.test(key) && key !== "." && !key.startsWith("..");
}

/** A valid name of an environment variable: printable ASCII without an equals sign. */
export function isEnvName(name: string): boolean {
  return /^[\u0020-\u007E]+$/.test(name) && !name.includes("=");
}

/** A valid prefix of a Service's name. */
export function isServicePrefix(name: string): boolean {
  return /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name);
}

// oxlint-disable-next-line no-control-regex -- it detects control characters
const control = /[\u0000-\u001F\u007F]/;

/** Safe as a command-line argument: not an option, and without control characters. */
export function isArgument(value: string): boolean {
  return value !== "" && !value.startsWith("-") && !control.test(value);
}

/** A directory relative to a root, without leading and trailing slashes; undefined if it is outside the root. */
export function directoryBelowRoot(path: string): string | undefined {
  if (control.test(path)) return undefined;
  const steps: string[] = [];
  for (const step of path.split("/")) {
    if (step === "" || step === ".") continue;
    if (step !== "..") steps.push(step);
    else if (steps.pop() === undefined) return undefined;
  }
  return steps.join("/");
}
