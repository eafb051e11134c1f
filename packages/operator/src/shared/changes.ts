/** The changes of a run in one line. Pure. */

type Change = "create" | "update" | "replace" | "delete" | "import" | "same";

/** The parts of a replacement count as one replacement. */
const changeTexts: Readonly<Record<Change, { readonly planned: string; readonly done: string }>> = {
  create: { planned: "to create", done: "created" },
  update: { planned: "to update", done: "updated" },
  replace: { planned: "to replace", done: "replaced" },
  delete: { planned: "to delete", done: "deleted" },
  import: { planned: "to import", done: "imported" },
  same: { planned: "unchanged", done: "unchanged" },
};

/** For people who decide about changes, the irrevocable ones come first. */
export const riskOrder: readonly Change[] = ["replace", "delete", "create", "update", "import", "same"];
export const usualOrder: readonly Change[] = ["create", "update", "replace", "delete", "import", "same"];

interface SummaryOptions {
  readonly isPreview: boolean;
  readonly order?: readonly Change[];
}

export function changeSummary(
  changes: Readonly<Record<string, number>>,
  { isPreview, order = usualOrder }: SummaryOptions,
): string {
  const parts = order.flatMap((change) => {
    const count = changes[change] ?? 0;
    return count > 0 ? [`${count} ${changeTexts[change][isPreview ? "planned" : "done"]}`] : [];
  });
  return parts.length > 0 ? parts.join(", ") : "no changes";
}
