/** When each resource was worked on, as a chart. Each bar is a row of a table, so that it can be read without seeing it. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import { Empty, TableFrame } from "../../components/common.tsx";
import { Badge } from "../../components/icon.tsx";
import { now } from "../../data/clock.ts";
import { chartOf, shortDuration, type Bar, type Chart } from "../../lib/gantt.ts";
import { opClass, opSymbol, opText, type ResourceState } from "../../lib/run.ts";
import type { RunView } from "./index.tsx";

/** More rows would make the page slow; a filter shows the rest. */
const maxBars = 500;

export function TimelineTab({ model, isRunning }: RunView) {
  const all = useSignal(false);
  const end = isRunning ? now.value : (model.end ?? 0);
  const chart = useMemo(() => chartOf(model.resources, { now: end, all: all.value }), [model, end, all.value]);
  const unchanged = model.resources.filter(({ op }) => op === "same").length;
  return (
    <>
      {unchanged === 0 ? null : (
        <p class="toolbar">
          <label class="check">
            <input type="checkbox" checked={all.value} onChange={() => (all.value = !all.value)} /> Show unchanged
            resources ({unchanged})
          </label>
        </p>
      )}
      {chart.bars.length === 0 ? (
        <Empty title={isRunning ? "No resource is being changed yet." : "No resource was changed."} />
      ) : (
        <ChartTable chart={chart} />
      )}
    </>
  );
}

const ChartTable = ({ chart }: { readonly chart: Chart }) => (
  <TableFrame label="Timeline of resources">
    <table class="gantt">
      <thead>
        <tr>
          <th scope="col">Resource</th>
          <th scope="col">Step</th>
          <th scope="col">Took</th>
          <th scope="col" class="gantt-axis">
            <span class="visually-hidden">Time</span>
            <span class="gantt-ticks" aria-hidden="true">
              {chart.ticks.map(({ left, ms }) => (
                <span key={ms} class={left > 92 ? "tick last-tick" : "tick"} style={{ left: `${left}%` }}>
                  {ms === 0 ? "0" : shortDuration(ms)}
                </span>
              ))}
            </span>
          </th>
        </tr>
      </thead>
      <tbody>
        {chart.bars.slice(0, maxBars).map((bar) => (
          <BarRow key={`${bar.resource.op} ${bar.resource.urn}`} bar={bar} />
        ))}
      </tbody>
    </table>
    {chart.bars.length > maxBars ? <p class="muted">and {chart.bars.length - maxBars} more resources</p> : null}
  </TableFrame>
);

const stateTexts: Readonly<Record<ResourceState, string>> = { running: "running", done: "", failed: "failed" };

function BarRow({ bar: { resource, left, width, durationMs } }: { readonly bar: Bar }) {
  const tone = resource.state === "failed" ? "failed" : resource.state === "running" ? "running" : opClass(resource.op);
  return (
    <tr>
      <td class="gantt-name" title={resource.urn}>
        <strong>{resource.name}</strong> <span class="muted">{resource.type}</span>
      </td>
      <td class="gantt-op">
        <span class={`op op-${opClass(resource.op)}`}>
          <span aria-hidden="true">{opSymbol(resource.op)} </span>
          {opText(resource.op)}
        </span>
        {resource.state === "failed" ? <Badge icon="cross" tone="bad" text={stateTexts.failed} /> : null}
        {resource.state === "running" ? <Badge icon="play" tone="info" text={stateTexts.running} /> : null}
      </td>
      <td class="number">{shortDuration(durationMs)}</td>
      <td class="gantt-cell">
        <span class={`bar bar-${tone}`} style={{ left: `${left}%`, width: `${width}%` }} />
      </td>
    </tr>
  );
}
