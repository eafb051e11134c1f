/** The runs of a Stack, the newest first. Two of them can be compared. */
import { useSignal } from "@preact/signals";

import { Empty, TableFrame, Time, WatchNotice } from "../../components/common.tsx";
import { ResultBadge } from "../../components/icon.tsx";
import { navigate } from "../../data/location.ts";
import { durationBetween } from "../../lib/gantt.ts";
import { paths } from "../../lib/routes.ts";
import { runsOf, type RunRow } from "../../lib/runs.ts";
import type { StackView } from "./index.tsx";

export function RunsTab({ updates, records }: StackView) {
  const rows = runsOf(updates.items, records.items);
  const chosen = useSignal<readonly string[]>([]);
  const toggle = (name: string): void => {
    const others = chosen.value.filter((each) => each !== name);
    chosen.value = others.length < chosen.value.length ? others : [...chosen.value.slice(-1), name];
  };
  if (rows.length === 0) {
    return (
      <>
        <WatchNotice watched={updates} what="the Updates" />
        {updates.state.kind === "synced" ? <Empty title="The Stack has not run yet." /> : null}
      </>
    );
  }
  return (
    <>
      <WatchNotice watched={records} what="the records of its runs" />
      <CompareButton rows={rows} chosen={chosen.value} />
      <TableFrame label="Runs">
        <table>
          <thead>
            <tr>
              <th scope="col">Compare</th>
              <th scope="col">Run</th>
              <th scope="col">Result</th>
              <th scope="col">Started</th>
              <th scope="col">Took</th>
              <th scope="col">For</th>
              <th scope="col">Changes</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={row.name} row={row} isChosen={chosen.value.includes(row.name)} onToggle={toggle} />
            ))}
          </tbody>
        </table>
      </TableFrame>
    </>
  );
}

interface RowProps {
  readonly row: RunRow;
  readonly isChosen: boolean;
  readonly onToggle: (name: string) => void;
}

const Row = ({ row, isChosen, onToggle }: RowProps) => (
  <tr>
    <td>
      <input
        type="checkbox"
        aria-label={`Compare ${row.name}`}
        disabled={!row.hasRecord}
        checked={isChosen}
        onChange={() => onToggle(row.name)}
      />
    </td>
    <td class="name-cell">
      <a href={paths.run(row)}>{row.name}</a> <span class="muted">{row.type}</span>
    </td>
    <td>
      <ResultBadge result={row.result} />
    </td>
    <td>
      <Time time={row.startTime} />
    </td>
    <td class="name-cell">{durationBetween(row.startTime, row.endTime)}</td>
    <td>{row.reason}</td>
    <td class="wide-cell">{row.summary}</td>
  </tr>
);

/** The older run first. */
function CompareButton({ rows, chosen }: { readonly rows: readonly RunRow[]; readonly chosen: readonly string[] }) {
  const [newer, older] = rows.filter(({ name }) => chosen.includes(name));
  return (
    <p class="toolbar">
      <button
        type="button"
        disabled={!newer || !older}
        onClick={() => newer && older && navigate(paths.compare(older, newer.name))}
      >
        Compare two runs
      </button>
      <span class="muted">{newer && older ? "" : "Choose two recorded runs."}</span>
    </p>
  );
}
