/** Keeps a Stack until its resources are destroyed, and an Update until its Stack has taken note of it. */
export const stackFinalizer = "finalizer.stack.pulumi.com";
