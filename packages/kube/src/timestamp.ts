/** A time as Kubernetes writes it: RFC 3339 in UTC, in whole seconds. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
