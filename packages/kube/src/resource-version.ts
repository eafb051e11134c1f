/**
 * The order of resource versions. The API server's are etcd revisions: whole numbers that only grow, which Kubernetes
 * promises since 1.35 and has kept since its beginning. An extension server may have others; those are only compared for
 * being the same.
 */

export function isNewer(version: string, than: string): boolean {
  if (!isNumber(version) || !isNumber(than)) return version !== than;
  return version.length === than.length ? version > than : version.length > than.length;
}

export function newest(one: string, other: string): string {
  return isNewer(one, other) ? one : other;
}

function isNumber(version: string): boolean {
  return /^[1-9]\d*$/.test(version) || version === "0";
}
