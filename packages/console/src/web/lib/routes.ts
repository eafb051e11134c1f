/** Every view has its own address. Pure. */

export const stackTabs = ["overview", "resources", "runs", "outputs", "inputs", "drift", "events", "yaml"] as const;
export type StackTab = (typeof stackTabs)[number];

export const runTabs = ["timeline", "diagnostics", "changes", "log"] as const;
export type RunTab = (typeof runTabs)[number];

export type Route =
  | { readonly page: "fleet" }
  | { readonly page: "stack"; readonly namespace: string; readonly name: string; readonly tab: StackTab }
  | { readonly page: "run"; readonly namespace: string; readonly name: string; readonly tab: RunTab }
  | { readonly page: "compare"; readonly namespace: string; readonly name: string; readonly other: string }
  | { readonly page: "approvals" }
  | { readonly page: "approval"; readonly namespace: string; readonly name: string }
  | { readonly page: "dependencies" }
  | { readonly page: "operator" }
  | { readonly page: "signIn" }
  | { readonly page: "missing"; readonly path: string };

export function parseRoute(path: string): Route {
  const [first, ...rest] = path.split("/").filter(Boolean).map(decode);
  const isPlain = rest.length === 0;
  switch (first) {
    case undefined:
      return { page: "fleet" };
    case "stacks":
      return stackRoute(rest) ?? { page: "missing", path };
    case "runs":
      return runRoute(rest) ?? { page: "missing", path };
    case "approvals":
      return isPlain ? { page: "approvals" } : (approvalRoute(rest) ?? { page: "missing", path });
    case "dependencies":
    case "operator":
      return isPlain ? { page: first } : { page: "missing", path };
    case "sign-in":
      return isPlain ? { page: "signIn" } : { page: "missing", path };
    default:
      return { page: "missing", path };
  }
}

/** Whether an object can have this name. The server refuses subscriptions to others. */
export const isObjectName = (text: string | undefined): text is string =>
  text !== undefined && /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text);

function stackRoute([namespace, name, tab = "overview", ...more]: readonly string[]): Route | undefined {
  const known = stackTabs.find((each) => each === tab);
  if (!isObjectName(namespace) || !isObjectName(name) || !known || more.length > 0) return undefined;
  return { page: "stack", namespace, name, tab: known };
}

function runRoute([namespace, name, tab = "timeline", other, ...more]: readonly string[]): Route | undefined {
  if (!isObjectName(namespace) || !isObjectName(name) || more.length > 0) return undefined;
  if (tab === "compare") return isObjectName(other) ? { page: "compare", namespace, name, other } : undefined;
  const known = runTabs.find((each) => each === tab);
  return known && other === undefined ? { page: "run", namespace, name, tab: known } : undefined;
}

function approvalRoute([namespace, name, ...more]: readonly string[]): Route | undefined {
  return isObjectName(namespace) && isObjectName(name) && more.length === 0
    ? { page: "approval", namespace, name }
    : undefined;
}

/** An address that is not encoded correctly is shown as missing, not thrown at the user. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

interface Named {
  readonly namespace: string;
  readonly name: string;
}

const path = (...parts: readonly string[]): string => `/${parts.map(encodeURIComponent).join("/")}`;

export const paths = {
  fleet: "/",
  approvals: "/approvals",
  dependencies: "/dependencies",
  operator: "/operator",
  signIn: "/sign-in",
  stack: ({ namespace, name }: Named, tab: StackTab = "overview"): string =>
    tab === "overview" ? path("stacks", namespace, name) : path("stacks", namespace, name, tab),
  run: ({ namespace, name }: Named, tab: RunTab = "timeline"): string =>
    tab === "timeline" ? path("runs", namespace, name) : path("runs", namespace, name, tab),
  compare: ({ namespace, name }: Named, other: string): string => path("runs", namespace, name, "compare", other),
  approval: ({ namespace, name }: Named): string => path("approvals", namespace, name),
} as const;
