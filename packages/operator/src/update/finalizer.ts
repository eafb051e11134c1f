/** Keeps an Update whose run may be active: deleting the Update cancels the run, and the object is deleted after that. */
export const updateFinalizer = "finalizer.update.auto.pulumi.com";
