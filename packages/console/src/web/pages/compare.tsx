/** Two runs side by side, from their records. */
import type { UpdateRecord } from "@pko/api/browser";
import type { RecordContent } from "@pko/records/browser";

import { Empty, Loading, PageTitle, Section, TableFrame, WatchNotice } from "../components/common.tsx";
import { Badge } from "../components/icon.tsx";
import { useContent } from "../data/record-content.ts";
import { useWatch } from "../data/watches.ts";
import { compareFacts, compareInputs, compareResources, factsOf, type Difference } from "../lib/compare.ts";
import { paths, type Route } from "../lib/routes.ts";
import { runModel } from "../lib/run.ts";

export function ComparePage({ namespace, name, other }: Extract<Route, { page: "compare" }>) {
  const first = useWatch<UpdateRecord>("updaterecords", { namespace, name }).value;
  const second = useWatch<UpdateRecord>("updaterecords", { namespace, name: other }).value;
  const [a] = first.items;
  const [b] = second.items;
  return (
    <>
      <nav class="breadcrumb" aria-label="Breadcrumb">
        <a href={paths.fleet}>Stacks</a> / <a href={`/?namespace=${encodeURIComponent(namespace)}`}>{namespace}</a>
        {a?.record.stackName === undefined ? null : (
          <>
            {" "}
            / <a href={paths.stack({ namespace, name: a.record.stackName }, "runs")}>{a.record.stackName}</a>
          </>
        )}
      </nav>
      <PageTitle title="Compare two runs" />
      <WatchNotice watched={first} what={`the record of ${name}`} />
      <WatchNotice watched={second} what={`the record of ${other}`} />
      {a && b ? <Comparison a={a} b={b} /> : null}
      {(!a && first.state.kind === "synced") || (!b && second.state.kind === "synced") ? (
        <Empty title={`There is no record of ${a ? other : name}.`}>
          <p>Only runs with a record can be compared. Records are deleted some time after the run.</p>
        </Empty>
      ) : null}
    </>
  );
}

interface Records {
  readonly a: UpdateRecord;
  readonly b: UpdateRecord;
}

function Comparison({ a, b }: Records) {
  const [left, right] = [useContent(a).value, useContent(b).value];
  return (
    <>
      <Section title="Facts">
        <FactTable a={a} b={b} />
      </Section>
      <Section title="Inputs">
        <InputList a={a} b={b} />
      </Section>
      <Section title="Resources that the runs treated differently">
        {left === "loading" || right === "loading" ? <Loading what="the records" /> : <Resources a={left} b={right} />}
      </Section>
    </>
  );
}

function FactTable({ a, b }: Records) {
  const { namespace = "" } = a.metadata;
  return (
    <TableFrame label="Facts">
      <table>
        <thead>
          <tr>
            <th scope="col">Fact</th>
            {[a, b].map(({ record }) => (
              <th key={record.updateName} scope="col">
                <a href={paths.run({ namespace, name: record.updateName })}>{record.updateName}</a>
              </th>
            ))}
            <th scope="col">Difference</th>
          </tr>
        </thead>
        <tbody>
          {compareFacts(factsOf(a.record), factsOf(b.record)).map((difference) => (
            <FactRow key={difference.label} {...difference} />
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}

const FactRow = ({ label, a, b, isEqual, isExpected }: Difference) => (
  <tr>
    <th scope="row">{label}</th>
    <td class="wide-cell">{a}</td>
    <td class="wide-cell">{b}</td>
    <td>
      {isEqual ? <span class="muted">the same</span> : null}
      {isEqual || isExpected ? null : <Badge icon="triangle" tone="warning" text="different" />}
    </td>
  </tr>
);

function InputList({ a, b }: Records) {
  const inputs = compareInputs(a.record.inputs ?? {}, b.record.inputs ?? {});
  if (inputs.length === 0) return <p class="muted">The records have no digests of inputs.</p>;
  return (
    <ul class="plain-list">
      {inputs.map(({ name, text }) => (
        <li key={name}>
          <code>{name}</code> {text === "the same" ? <span class="muted">{text}</span> : <strong>{text}</strong>}
        </li>
      ))}
    </ul>
  );
}

type Content = RecordContent | undefined;

function Resources({ a, b }: { readonly a: Content; readonly b: Content }) {
  const rows = compareResources(runModel(a?.events ?? []).resources, runModel(b?.events ?? []).resources);
  if (rows.length === 0) return <Empty title="Both runs did the same to every resource." />;
  return (
    <TableFrame label="Resources">
      <table>
        <thead>
          <tr>
            <th scope="col">Resource</th>
            <th scope="col">First run</th>
            <th scope="col">Second run</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.urn}>
              <td title={row.urn}>
                <strong>{row.name}</strong> <span class="muted">{row.type}</span>
              </td>
              <td>{row.a}</td>
              <td>{row.b}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}
