/** Keeps an Update whose run may be under way: deleting it cancels the run, and only then does the object go. */
export const updateFinalizer = "finalizer.update.auto.pulumi.com";
