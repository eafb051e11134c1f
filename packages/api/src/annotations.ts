/** Annotations that the operator reads and writes. */

/** On a Stack: any new value asks for one update. */
export const reconcileRequestAnnotation = "pulumi.com/reconciliation-request";

/** On the Secret of an Update's outputs: the keys that Pulumi holds secret, as a JSON list. */
export const secretOutputsAnnotation = "pulumi.com/secrets";
