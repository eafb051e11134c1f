import { expect, test } from "bun:test";

import { findings } from "./cli.ts";

test("the size is in MB, and times are those of all runs", () => {
  const times = [
    { wallMs: 40, cpuMs: 30 },
    { wallMs: 80, cpuMs: 50 },
  ];
  const { figures } = findings({ bytes: 2 * 1024 ** 2, help: times, version: times, get: times, load: 1 }, 5000);
  const medians = Object.fromEntries(figures.map(({ id, summary }) => [id, summary.median]));
  expect(medians).toEqual({
    "cli.size": 2,
    "cli.help": 60,
    "cli.help.cpu": 40,
    "cli.version": 60,
    "cli.get": 60,
    "cli.get.cpu": 40,
  });
  expect(figures.at(-1)?.note).toBe("5000 Stacks");
});
