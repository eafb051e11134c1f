/** Annotations that the operator reads and writes. */

/** On a Stack: each new value requests one update. */
export const reconcileRequestAnnotation = "pulumi.com/reconciliation-request";

/** On a Stack: the name of the Update to cancel. The operator does not retry it automatically. */
export const cancellationRequestAnnotation = "pulumi.com/cancellation-request";

/** On the Secret with an Update's outputs: the keys that Pulumi treats as secrets, as a JSON list. */
export const secretOutputsAnnotation = "pulumi.com/secrets";

/** On the CRDs: the version of the operator that wrote them, and a hash of the spec that it wrote. */
export const crdVersionAnnotation = "pulumi.com/operator-version";
export const crdHashAnnotation = "pulumi.com/definition-hash";

/** On the CA's Secret: any value requests a rotation. The operator removes the annotation after it has added the new CA. */
export const caRotationRequestAnnotation = "pulumi.com/ca-rotation-request";
