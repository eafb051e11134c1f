/** Users of the cluster with the roles of an installation, and what they decide about plans. */
import { tmpdir } from "node:os";

import { approvalKind, type ApprovalRequest, type ApprovalSpec } from "@pko/api";
import { clusterKubeconfig, toolPath } from "@pko/cluster";
import { operatorNamespace, operatorObjects } from "@pko/install";
import { waitFor, type Kubectl } from "@pko/testkit";

import { applyTo, at, kubectl, type Place } from "./cluster.ts";

/** `edit` is the role of Kubernetes, to which the operator's own is aggregated. */
export type UserRole = "edit" | "approver";

const roleNames: Readonly<Record<UserRole, string>> = { edit: "edit", approver: `${operatorNamespace}-approver` };
/** What a user with the role may create. */
const permissions: Readonly<Record<UserRole, string>> = {
  edit: "updates.auto.pulumi.com",
  approver: "approvals.auto.pulumi.com",
};

/** kubectl as a user who has only this role, only in this namespace. */
export async function createUser(place: Place, name: string, role: UserRole): Promise<Kubectl> {
  await installUserRoles();
  const apiGroup = "rbac.authorization.k8s.io";
  await applyTo(place, {
    apiVersion: `${apiGroup}/v1`,
    kind: "RoleBinding",
    metadata: { name: `${name}-${role}` },
    roleRef: { apiGroup, kind: "ClusterRole", name: roleNames[role] },
    subjects: [{ apiGroup, kind: "User", name }],
  });
  const user = kubectlAs(name);
  const isEffective = (): Promise<boolean> =>
    user(["auth", "can-i", "create", permissions[role], ...at(place)]).then(
      () => true,
      () => false,
    );
  await waitFor(isEffective, { timeoutMs: 60_000, what: `the role ${role} of ${name}` });
  return user;
}

const kubectlAs =
  (name: string): Kubectl =>
  (args, options) =>
    kubectl([`--as=${name}`, ...args], options);

async function installUserRoles(): Promise<void> {
  const names = new Set(["view", "edit", "approver"].map((role) => `${operatorNamespace}-${role}`));
  const items = (operatorObjects as readonly { kind: string; metadata: { name: string } }[]).filter(
    ({ kind, metadata }) => kind === "ClusterRole" && names.has(metadata.name),
  );
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
  await kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], { input });
}

/** An Approval of a plan, as its user creates it. */
export function newApproval(
  { updateName, updateUid, digest }: Pick<ApprovalRequest, "updateName" | "updateUid" | "digest">,
  spec: Pick<ApprovalSpec, "decidedBy"> & Partial<ApprovalSpec>,
): object {
  const { apiVersion, kind } = approvalKind;
  return {
    apiVersion,
    kind,
    metadata: { generateName: `${updateName}-` },
    spec: { updateName, updateUid, digest, decision: "Approve", ...spec },
  };
}

/** For dry runs. */
export const anyPlan = { updateName: "any", updateUid: "any", digest: "any" };

/**
 * Waits until the API server enforces the policy for Approvals, a moment after it was installed. An operator that finds it
 * missing checks again only after a minute.
 */
export async function untilApprovalsAreChecked(place: Pick<Place, "namespace">): Promise<void> {
  const input = JSON.stringify(newApproval(anyPlan, { decidedBy: "somebody else" }));
  const isDenied = (): Promise<boolean> =>
    kubectl(["create", ...at(place), "--dry-run=server", "-f", "-"], { input }).then(
      () => false,
      (error: unknown) => String(error).includes("spec.decidedBy"),
    );
  await waitFor(isDenied, { timeoutMs: 120_000, what: "the policy for Approvals to be in force" });
}

/** Runs a command of a message in a shell, as a user who copies it. */
export async function runAs(user: string, command: string): Promise<string> {
  const script = `kubectl() { "$KUBECTL" --kubeconfig="$KUBECONFIG_FILE" --as="$KUBE_USER" "$@"; }\n${command}\n`;
  const child = Bun.spawn(["sh", "-c", script], {
    stdout: "pipe",
    stderr: "pipe",
    env: {
      PATH: process.env["PATH"] ?? "",
      // kubectl caches what the API server serves.
      HOME: tmpdir(),
      KUBECTL: toolPath("kubectl"),
      KUBECONFIG_FILE: clusterKubeconfig(),
      KUBE_USER: user,
    },
  });
  const [output, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`${command}\nfailed: ${error}`);
  return output;
}
