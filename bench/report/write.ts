/** The report on disk: JSON, and a plot for each curve. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { Curve, Report } from "./figures.ts";
import { plot } from "./plot.ts";

/** Returns the files that were written. */
export async function writeReport(folder: string, report: Report, others: readonly Report[]): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const files = new Map([["report.json", `${JSON.stringify(report, undefined, 2)}\n`]]);
  for (const curve of report.curves) files.set(`${curve.id}.svg`, renderPlot(curve, [report, ...others]));
  for (const [name, content] of files) await writeFile(join(folder, name), content);
  return [...files.keys()].map((name) => join(folder, name));
}

/** Returns the file. */
export async function writeJson(folder: string, name: string, report: Report): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, `${JSON.stringify(report, undefined, 2)}\n`);
  return file;
}

function renderPlot({ id, title, x, y }: Curve, reports: readonly Report[]): string {
  const series = reports.flatMap(({ image, curves }) => {
    const curve = curves.find((each) => each.id === id);
    return curve ? [{ name: image.slice(image.lastIndexOf("/") + 1), points: curve.points }] : [];
  });
  return plot({ title, x, y, series });
}

export async function readReport(file: string): Promise<Report> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Report;
  } catch (error) {
    throw new Error(`${file} in COMPARE is not a report of an earlier run`, { cause: error });
  }
}
