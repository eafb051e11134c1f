/** Whether an Update has ended. */
import type { UpdateStatus } from "./status.ts";

export const isComplete = ({ status }: { readonly status?: UpdateStatus }): boolean =>
  status?.conditions?.some((condition) => condition.type === "Complete" && condition.status === "True") ?? false;
