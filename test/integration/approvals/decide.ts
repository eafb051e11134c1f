/** Approvals in tests: of a plan, by the user of the test, and with or without the admission policy. */
import { approvalKind, type Approval } from "@pko/api";
import { resource, type Client, type KubeObject } from "@pko/kube";
import { approvals, type PolicyProbe } from "@pko/operator";

/** For tests of something else: the admission policy for Approvals counts as in force. */
export const policyInForce: PolicyProbe = {
  state: () => ({ kind: "inForce" }),
  follow: () => undefined,
  need: () => undefined,
  forget: () => undefined,
  stop: () => undefined,
};

interface SelfReview extends KubeObject {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

const selfReviews = resource<SelfReview>({
  apiVersion: "authentication.k8s.io/v1",
  kind: "SelfSubjectReview",
  plural: "selfsubjectreviews",
  namespaced: false,
});

/** The name of the client's user, which an Approval has to contain. */
export async function userOf(client: Client): Promise<string> {
  const { apiVersion, kind } = selfReviews;
  const { status } = await client.create(selfReviews, { apiVersion, kind, metadata: {} });
  return status?.userInfo?.username ?? "";
}

interface Decided {
  readonly updateName: string;
  readonly updateUid: string;
  readonly digest: string;
}

export async function decide(
  place: { readonly client: Client; readonly namespace: string },
  { updateName, updateUid, digest }: Decided,
  more: Partial<Pick<Approval["spec"], "decision" | "reason">> & { readonly name?: string } = {},
): Promise<Approval> {
  const { client, namespace } = place;
  const { name = `${updateName}-decision`, ...spec } = more;
  const { apiVersion, kind } = approvalKind;
  return await client.create(approvals, {
    apiVersion,
    kind,
    metadata: { name, namespace },
    spec: { updateName, updateUid, digest, decision: "Approve", decidedBy: await userOf(client), ...spec },
  });
}
