/** The parts of a resource's URN: `urn:pulumi:STACK::PROJECT::PARENT-TYPES$TYPE::NAME`. */

/** Without the types of its parents. */
export function urnType(urn: string): string {
  const types = urn.split("::")[2] ?? "";
  return types.slice(types.lastIndexOf("$") + 1);
}

/** The engine refers to a provider by its URN and its ID: `URN::ID`. */
export function providerUrn(reference: string): string {
  return reference.slice(0, Math.max(0, reference.lastIndexOf("::")));
}

/** A name may contain `::`. */
export function urnName(urn: string): string {
  return urn.split("::").slice(3).join("::");
}
