import { describe, expect, test } from "bun:test";

import { axis, plot } from "./plot.ts";

describe("an axis", () => {
  test("starts at zero and ends at a round step above the largest value", () => {
    expect(axis([3, 97])).toEqual({ end: 100, ticks: [0, 20, 40, 60, 80, 100] });
  });
  test("ends at the largest value if that is round", () => expect(axis([1000]).end).toBe(1000));
  test("has tidy ticks below one", () => expect(axis([0.3]).ticks).toEqual([0, 0.1, 0.2, 0.3]));
  test("without values goes from zero to one", () => expect(axis([])).toEqual({ end: 1, ticks: [0, 1] }));
});

describe("a chart", () => {
  const chart = plot({
    title: "memory & time",
    x: "stacks",
    y: "MB",
    series: [
      {
        name: "<ours>",
        points: [
          { x: 0, y: 50 },
          { x: 1000, y: 100 },
        ],
      },
      { name: "theirs", points: [{ x: 1000, y: 20 }] },
    ],
  });

  test("places values according to the axes", () => {
    // The largest values are at the right and the upper edge of the area.
    expect(chart).toContain('<polyline points="72.0,206.0 696.0,48.0"');
  });
  test("gives each series a different color", () => {
    expect(new Set(chart.match(/stroke="#[0-9a-f]{6}" stroke-width/g)).size).toBe(2);
  });
  test("escapes text", () => {
    expect(chart).toContain("memory &amp; time");
    expect(chart).toContain("&lt;ours&gt;");
  });
});
