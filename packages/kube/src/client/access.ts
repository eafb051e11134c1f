/** Whether somebody may do something, as the API server decides it. */
import { resource, type KubeObject, type Resource } from "../resource.ts";
import type { Client } from "./client.ts";

interface AccessReview extends KubeObject {
  readonly spec: object;
  readonly status?: { readonly allowed?: boolean };
}

const reviewsOf = (kind: string): Resource<AccessReview> =>
  resource<AccessReview>({
    apiVersion: "authorization.k8s.io/v1",
    kind,
    plural: `${kind.toLowerCase()}s`,
    namespaced: false,
  });

const selfSubjectAccessReviews = reviewsOf("SelfSubjectAccessReview");
const subjectAccessReviews = reviewsOf("SubjectAccessReview");

/** Whether the client itself may do it. Every authenticated client may create such a review. */
export const mayClient = (client: Client, resourceAttributes: object): Promise<boolean> =>
  isAllowed(client, selfSubjectAccessReviews, { resourceAttributes });

/** Whether the user in the spec may do it. */
export const mayUser = (client: Client, spec: object): Promise<boolean> =>
  isAllowed(client, subjectAccessReviews, spec);

async function isAllowed(client: Client, reviews: Resource<AccessReview>, spec: object): Promise<boolean> {
  const { apiVersion, kind } = reviews;
  return (await client.create(reviews, { apiVersion, kind, metadata: {}, spec })).status?.allowed === true;
}
