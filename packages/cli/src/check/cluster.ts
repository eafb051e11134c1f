/** Preflight checks. Each reads one thing with the user's own permissions, and reports what it found. */
import {
  classesAnnotation,
  crdVersionAnnotation,
  isNewer,
  kindDefinitions,
  normalizeStack,
  stackDefinition,
  version,
  type Stack,
} from "@pko/api";
import { mayClient, serverVersion, type KubeObject } from "@pko/kube";

import type { Context } from "../context.ts";
import type { Check } from "../documents.ts";
import { permissionText } from "../errors.ts";
import { admissionPolicies, crds, type Crd } from "../kinds.ts";
import { relative } from "../output/time.ts";
import { look, type Hidden, type Seen } from "../visibility.ts";
import type { OperatorFacts } from "../why/facts.ts";
import { gatherSurroundings } from "../why/gather.ts";
import { operatorDown, operatorSuspended } from "../why/rules/operator.ts";

const leastMinor = 31;

interface ClusterOptions {
  /** The Go operator is installed, and its CRDs are not all that this operator has. */
  readonly isMigration?: boolean;
}

export async function clusterChecks(context: Context, options: ClusterOptions = {}): Promise<Check[]> {
  const [kubernetes, definitions, policies, around, permissions] = await Promise.all([
    serverVersion(context.credentials),
    readCrds(context),
    look("the admission policies", context.client.list(admissionPolicies)),
    gatherSurroundings(context),
    permissionChecks(context),
  ]);
  return [
    kubernetesCheck(kubernetes),
    crdCheck(definitions, options),
    operatorCheck(around.operator, around.hidden, context.io.now()),
    ...classesCheck(around.operator),
    ...policyChecks(policies),
    ...permissions,
  ];
}

const hiddenCheck = (name: string, { permission }: Hidden): Check => ({
  name,
  result: "unknown",
  message: `cannot see it: you do not have permission to ${permissionText(permission)}`,
});

export function kubernetesCheck(gitVersion: string): Check {
  const [, major = "0", minor = "0"] = /^v(\d+)\.(\d+)/.exec(gitVersion) ?? [];
  const isNew = Number(major) > 1 || Number(minor) >= leastMinor;
  return {
    name: "Kubernetes",
    result: isNew ? "ok" : "failed",
    message: gitVersion,
    ...(!isNew && { fix: `The operator needs Kubernetes 1.${leastMinor} or newer.` }),
  };
}

type Crds = readonly (readonly [name: string, crd: Seen<Crd>])[];

async function readCrds({ client }: Context): Promise<Crds> {
  const names = kindDefinitions.map(({ plural, group }) => `${plural}.${group}`);
  return await Promise.all(
    names.map(async (name) => [name, await look(`the CRD ${name}`, client.get(crds, { name }))] as const),
  );
}

export function crdCheck(definitions: Crds, { isMigration = false }: ClusterOptions = {}): Check {
  const name = "CRDs";
  const hidden = definitions.flatMap(([, crd]) => (crd.kind === "hidden" ? [crd.hidden] : []));
  if (hidden[0]) return hiddenCheck(name, hidden[0]);
  const missing = definitions.filter(([, crd]) => crd.kind === "absent").map(([each]) => each);
  if (missing.length === 0) return versionCheck(name, definitions);
  const names = missing.join(", ");
  return isMigration && isOfGoOperator(definitions)
    ? { name, result: "ok", message: `those of the Go operator; the switch installs ${names}` }
    : { name, result: "failed", message: `missing: ${names}`, fix: "Install or upgrade the operator." };
}

const crdOfStacks = `${stackDefinition.plural}.${stackDefinition.group}`;

/** Found by the CRD of Stacks, which every version has: version 1 has neither Workspaces nor Updates. */
function isOfGoOperator(definitions: Crds): boolean {
  const crd = new Map(definitions).get(crdOfStacks);
  return crd?.kind === "seen" && writtenBy(crd.value) === "";
}

function versionCheck(name: string, definitions: Crds): Check {
  const versions = definitions.flatMap(([, crd]) => (crd.kind === "seen" ? [writtenBy(crd.value)] : []));
  const [installed = ""] = [...new Set(versions)];
  if (new Set(versions).size > 1) {
    const fix = "The operator upgrades them when it starts: check its log.";
    return { name, result: "warning", message: `written by several versions: ${versions.join(", ")}`, fix };
  }
  if (installed === "") {
    return { name, result: "ok", message: "installed, but not by this operator (see --migrate)" };
  }
  if (isNewer(installed, version)) {
    const fix = `Update this command, which has version ${version}.`;
    return { name, result: "warning", message: `of operator ${installed}`, fix };
  }
  return { name, result: "ok", message: `of operator ${installed}` };
}

const writtenBy = ({ metadata }: Crd): string => metadata.annotations?.[crdVersionAnnotation] ?? "";

export function operatorCheck(operator: OperatorFacts, hidden: readonly Hidden[], now: number): Check {
  const name = "Operator";
  if (operator.kind === "unknown")
    return hidden[0] ? hiddenCheck(name, hidden[0]) : { name, result: "unknown", message: "" };
  if (operator.kind === "absent") {
    const message = "no Lease of an operator exists: none is installed, or it runs without leader election";
    return {
      name,
      result: "warning",
      message,
      fix: "Install the operator, or give its namespace with --operator-namespace.",
    };
  }
  const facts = {
    operator,
    now,
    namespace: "",
    name: "",
    updates: [],
    dependencies: new Map(),
    isNamespaceTerminating: false,
    hidden: [],
  };
  for (const [rule, result] of [
    [operatorDown, "failed"],
    [operatorSuspended, "warning"],
  ] as const) {
    const finding = rule(facts);
    if (finding) return { name, result, message: finding.cause.summary, fix: finding.cause.next.join(" ") };
  }
  const { holderIdentity = "", renewTime } = operator.lease.spec ?? {};
  const namespace = operator.lease.metadata.namespace ?? "";
  const message = `${holderIdentity} leads in namespace ${namespace}, renewed ${relative(String(renewTime), now)}`;
  return { name, result: "ok", message };
}

/** The leader reports it in its Lease. Nothing is known of an older operator. */
export function classesCheck(operator: OperatorFacts): Check[] {
  const state = operator.kind === "present" ? operator.lease.metadata.annotations?.[classesAnnotation] : undefined;
  const name = "WorkspaceClasses";
  if (state === "on") return [{ name, result: "ok", message: "on" }];
  if (state !== "off") return [];
  return [
    {
      name,
      result: "warning",
      message:
        "off: the operator does not have permission to list and watch workspaceclasses and namespaces in the whole cluster",
      fix: "If you use classes, set the chart value rbac.createClusterRole, and restart the operator.",
    },
  ];
}

interface Policy extends KubeObject {
  readonly spec?: {
    readonly matchConstraints?: { readonly resourceRules?: readonly { readonly resources?: readonly string[] }[] };
  };
}

/** Found by what they match, because the chart chooses their names. */
export function policyChecks(policies: Seen<{ readonly items: readonly KubeObject[] }>): Check[] {
  const wanted = [
    ["stacks", "Policy for Stacks", "Some mistakes in Stacks are reported late, by the operator."],
    ["approvals", "Policy for Approvals", "Stacks that require approvals do not run."],
  ] as const;
  return wanted.map(([resource, name, effect]): Check => {
    if (policies.kind === "hidden") return hiddenCheck(name, policies.hidden);
    const items = policies.kind === "seen" ? policies.value.items : [];
    const found = items.find((item) => matches(item, resource));
    if (found) return { name, result: "ok", message: found.metadata.name ?? "" };
    const fix = "Install the admission policies of the chart or the quickstart manifest.";
    return { name, result: "warning", message: `not installed. ${effect}`, fix };
  });
}

const matches = (policy: Policy, resource: string): boolean =>
  policy.spec?.matchConstraints?.resourceRules?.some(({ resources }) => resources?.includes(resource)) ?? false;

interface Permission {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  /** For which commands. */
  readonly needed: string;
}

const permissions: readonly Permission[] = [
  { group: "pulumi.com", resource: "stacks", verb: "list", needed: "get, graph" },
  { group: "pulumi.com", resource: "stacks", verb: "get", needed: "all commands" },
  { group: "pulumi.com", resource: "stacks", verb: "patch", needed: "reconcile, cancel, suspend, resume, drift" },
  { group: "auto.pulumi.com", resource: "updates", verb: "list", needed: "history, why" },
  { group: "auto.pulumi.com", resource: "workspaces", verb: "get", needed: "why" },
  { group: "auto.pulumi.com", resource: "approvals", verb: "create", needed: "approve, reject" },
  { group: "", resource: "pods", verb: "get", needed: "why, unlock" },
  { group: "", resource: "pods/log", verb: "get", needed: "logs" },
  { group: "", resource: "pods/exec", verb: "create", needed: "unlock" },
  { group: "", resource: "events", verb: "list", needed: "events" },
  { group: "", resource: "secrets", verb: "get", needed: "outputs --show-secrets" },
];

async function permissionChecks(context: Context): Promise<Check[]> {
  return await Promise.all(
    permissions.map(async (permission) => permissionCheck(permission, await isAllowed(context, permission))),
  );
}

async function isAllowed({ client, namespace, allNamespaces }: Context, permission: Permission): Promise<boolean> {
  const { group, verb } = permission;
  const [resource = "", subresource] = permission.resource.split("/");
  const resourceAttributes = {
    ...(!allNamespaces && { namespace }),
    verb,
    group,
    resource,
    ...(subresource !== undefined && { subresource }),
  };
  return await mayClient(client, resourceAttributes);
}

/** Not every user needs every permission, so a missing one is no failure. */
export function permissionCheck({ group, resource, verb, needed }: Permission, isAllowed: boolean): Check {
  const name = `Permission: ${verb} ${group === "" ? resource : `${resource}.${group}`}`;
  return isAllowed
    ? { name, result: "ok", message: `for ${needed}` }
    : {
        name,
        result: "warning",
        message: `missing: needed for ${needed}`,
        fix: "Ask an administrator for a Role that allows it.",
      };
}

/** The Stacks whose spec the operator rejects. */
export function specCheck(stacks: readonly Stack[]): Check {
  const invalid = stacks.filter((stack) => !normalizeStack(stack).ok);
  const names = invalid.map(({ metadata }) => `${metadata.namespace ?? ""}/${metadata.name ?? ""}`);
  const name = "Stacks";
  if (invalid.length === 0) return { name, result: "ok", message: `${stacks.length} found, all specs are valid` };
  return {
    name,
    result: "failed",
    message: `${invalid.length} of ${stacks.length} have an invalid spec: ${names.join(", ")}`,
    fix: "kubectl pulumi why STACK shows the invalid fields.",
  };
}
