/** What `kubectl get` prints about an object. */
import { apiServerWithApi } from "../api/install.ts";
import type { NamespacedRef } from "./scene.ts";

interface Shown extends NamespacedRef {
  /** As in `kubectl get`. */
  readonly kinds: string;
}

/** The cells of its row by column; those that are empty are left out. */
export async function printedRow(
  { kinds, namespace, name }: Shown,
  ...options: readonly string[]
): Promise<Record<string, string>> {
  const { kubectl } = await apiServerWithApi();
  const [header = "", row = ""] = (await kubectl(["get", kinds, name, "-n", namespace, ...options])).split("\n");
  // Columns are aligned, and separated by three spaces; names of columns contain single ones.
  const columns = Array.from(header.matchAll(/\S+(?: \S+)*/g), ({ 0: title, index }) => ({ title, index }));
  const cells = columns.map(
    ({ title, index }, at) => [title, row.slice(index, columns[at + 1]?.index).trim()] as const,
  );
  return Object.fromEntries(cells.filter(([, cell]) => cell !== ""));
}
