/** Annotations that the operator reads and writes. */

/** On a Stack: any new value asks for one update. */
export const reconcileRequestAnnotation = "pulumi.com/reconciliation-request";

/** On a Stack: the name of its Update that is to be cancelled, and not to be tried again by itself. */
export const cancellationRequestAnnotation = "pulumi.com/cancellation-request";

/** On the Secret of an Update's outputs: the keys that Pulumi holds secret, as a JSON list. */
export const secretOutputsAnnotation = "pulumi.com/secrets";

/** On the definitions of the kinds: the operator's version that wrote them, and a hash of what it wrote. */
export const crdVersionAnnotation = "pulumi.com/operator-version";
export const crdHashAnnotation = "pulumi.com/definition-hash";

/** On the Secret of the CA: any value requests a rotation. The operator removes it when it has added the new CA. */
export const caRotationRequestAnnotation = "pulumi.com/ca-rotation-request";
