/** The texts about records. */
const mebibyte = 1024 * 1024;

export function recordDeleted(maxTotalBytes: number): string {
  return (
    `The record of the run was deleted, because the records of all runs together exceeded ${Math.round(maxTotalBytes / mebibyte)} MiB. ` +
    "The oldest are deleted first. To keep more of them, raise the chart value records.maxTotalSize."
  );
}
