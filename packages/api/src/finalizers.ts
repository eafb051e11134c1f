/** Blocks the deletion of a Stack until its resources are destroyed, and of an Update until its Stack has recorded the result. */
export const stackFinalizer = "finalizer.stack.pulumi.com";
