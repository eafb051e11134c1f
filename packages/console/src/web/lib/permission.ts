/** Which permission is missing, from the API server's message. Pure. */

/** `list stacks.pulumi.com in namespace shop`, or undefined if the message is another one. */
export function missingPermission(message: string): string | undefined {
  const [, verb, resource] = /cannot (\w+) resource "([^"]+)"/.exec(message) ?? [];
  if (verb === undefined || resource === undefined) return undefined;
  const [, group = ""] = /in API group "([^"]*)"/.exec(message) ?? [];
  const [, namespace] = /in the namespace "([^"]+)"/.exec(message) ?? [];
  const [name, ...subresource] = resource.split("/");
  const full = [group === "" ? name : `${name}.${group}`, ...subresource].join("/");
  return `${verb} ${full} ${namespace === undefined ? "in all namespaces" : `in namespace ${namespace}`}`;
}
