/** Keeps a Stack until its resources are destroyed, and an Update until its Stack has recorded the result. */
export const stackFinalizer = "finalizer.stack.pulumi.com";
