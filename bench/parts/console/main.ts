/**
 * The console with many Stacks: `bun bench/parts/console/main.ts [--stacks=10000] [--rounds=5] [--json]`.
 *
 * A small API server, the console's server and Chromium share the machine; no cluster is needed. Prints a table for people or,
 * with `--json`, one line of JSON for machines.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

import { startConsole } from "@pko/console";
import { buildConsole } from "@pko/console/build";
import { staticCredentials } from "@pko/kube";
import { chromium, type Browser, type Page } from "playwright-core";

import { quantile } from "../../report/statistics.ts";
import { browserPath } from "../../../test/browser/browser-path.ts";
import type { ConsoleFigures, Visit } from "./figures.ts";
import { startFleetServer } from "./fleet-server.ts";
import { frameFigures } from "./frames.ts";

const { values } = parseArgs({
  options: {
    stacks: { type: "string", default: "10000" },
    rounds: { type: "string", default: "5" },
    frames: { type: "string", default: "300" },
    json: { type: "boolean", default: false },
  },
});

type Assets = Awaited<ReturnType<typeof buildConsole>>;

const compressedSize = (assets: Assets, extension: string): number =>
  [...assets].reduce((sum, [path, { bytes }]) => sum + (path.endsWith(extension) ? gzipSync(bytes).byteLength : 0), 0);

async function measure(): Promise<ConsoleFigures> {
  const assets = await buildConsole();
  const fleet = startFleetServer(Number(values.stacks));
  const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
  try {
    const visits: Visit[] = [];
    for (let round = 0; round < Number(values.rounds); round++) visits.push(await visit(browser, fleet.url, assets));
    const [scriptBytes, styleBytes] = [compressedSize(assets, ".js"), compressedSize(assets, ".css")];
    return { scriptBytes, styleBytes, visits, load: loadavg()[0] ?? 0 };
  } finally {
    await browser.close();
    await fleet.stop();
  }
}

/** A new console and a browser without a cache, as on the first visit. The address can be used once. */
async function visit(browser: Browser, server: string, assets: Assets): Promise<Visit> {
  const credentials = staticCredentials({ server, tls: {} });
  const console = await startConsole({ signIn: { mode: "kubeconfig", credentials }, port: 0, assets });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    const page = await context.newPage();
    const threadTime = await threadTimeOf(page);
    await page.addInitScript(recordTimes, `${values.stacks} Stacks`);
    await page.goto(console.url);
    await page.waitForFunction(() => (globalThis as unknown as Recorder).times.all !== undefined, undefined, {
      timeout: 120_000,
    });
    const cpuMs = await threadTime();
    const { load = 0, first = 0, all = 0 } = await page.evaluate(() => (globalThis as unknown as Recorder).times);
    const before = await longTasks(page);
    const scrolled = frameFigures(await scroll(page));
    const cpuMsPerFrame = ((await threadTime()) - cpuMs) / scrolled.frames;
    return {
      loadMs: load,
      firstMs: first,
      allMs: all,
      cpuMs,
      longestTaskMs: Math.max(0, ...before),
      scroll: { ...scrolled, cpuMsPerFrame, longTasks: (await longTasks(page)).length - before.length },
    };
  } finally {
    await context.close();
    await console.stop();
  }
}

/** Returns a function that reads the CPU time of the page's main thread, in milliseconds. */
async function threadTimeOf(page: Page): Promise<() => Promise<number>> {
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await devTools.send("Performance.getMetrics");
    return (metrics.find(({ name }) => name === "ThreadTime")?.value ?? Number.NaN) * 1000;
  };
}

interface Recorder {
  times: { load?: number; first?: number; all?: number };
  /** In milliseconds, each more than 50. */
  tasks: number[];
}

const longTasks = async (page: Page): Promise<number[]> =>
  await page.evaluate(() => (globalThis as unknown as Recorder).tasks);

/** Runs in the page, before its scripts. Times count from the start of the navigation. */
function recordTimes(complete: string): void {
  const times: Recorder["times"] = {};
  const tasks: Recorder["tasks"] = [];
  Object.assign(globalThis, { times, tasks });
  new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
    type: "longtask",
  });
  addEventListener("load", () => (times.load = performance.now()));
  const check = (): void => {
    if (document.querySelector(".fleet-row")) times.first ??= performance.now();
    if (document.querySelector(".subtitle")?.textContent === complete) times.all ??= performance.now();
    if (times.all === undefined) requestAnimationFrame(check);
  };
  check();
}

/** Scrolls by ten rows in each frame, and returns the times of the frames. */
const scroll = async (page: Page): Promise<number[]> =>
  await page.evaluate(async (count) => {
    const list = document.querySelector(".virtual-list");
    const times: number[] = [];
    while (times.length <= count) {
      times.push(await new Promise<number>((resolve) => requestAnimationFrame(resolve)));
      list?.scrollBy(0, 560);
    }
    return times;
  }, Number(values.frames));

function table({ scriptBytes, styleBytes, visits, load }: ConsoleFigures): string {
  const median = (pick: (visit: Visit) => number): number => quantile(visits.map(pick), 0.5);
  const kilobytes = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KB compressed`;
  const ms = (pick: (visit: Visit) => number): string => `${median(pick).toFixed(0)} ms`;
  const slow = `${(median(({ scroll }) => scroll.slowShare) * 100).toFixed(1)} % of the frames`;
  const rows = [
    ["JavaScript", kilobytes(scriptBytes)],
    ["style sheet", kilobytes(styleBytes)],
    ["page loaded", ms(({ loadMs }) => loadMs)],
    [`first of ${values.stacks} Stacks shown`, ms(({ firstMs }) => firstMs)],
    ["all Stacks shown, sorted", ms(({ allMs }) => allMs)],
    ["CPU time of the page until then", ms(({ cpuMs }) => cpuMs)],
    ["longest task until then", ms(({ longestTaskMs }) => longestTaskMs)],
    [
      "scrolling: time of a frame",
      `median ${ms(({ scroll }) => scroll.medianMs)}, 95 % ${ms((each) => each.scroll.p95Ms)}`,
    ],
    ["scrolling: longer than 33 ms", slow],
    ["scrolling: CPU time of a frame", `${median(({ scroll }) => scroll.cpuMsPerFrame).toFixed(1)} ms`],
    ["scrolling: tasks of more than 50 ms", median(({ scroll }) => scroll.longTasks).toFixed(0)],
    ["load of the machine", load.toFixed(1)],
  ];
  return rows.map(([name = "", value = ""]) => `${name.padEnd(36)} ${value}`).join("\n");
}

const figures = await measure();
console.log(values.json ? JSON.stringify(figures) : table(figures));
process.exit(0);
