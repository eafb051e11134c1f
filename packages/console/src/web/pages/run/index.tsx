/** One run: live from the pod's log, and afterwards the same page from its record. */
import {
  podNameOf,
  pulumiContainer,
  updateState,
  type Update,
  type UpdateRecord,
  type UpdateRecordContent,
} from "@pko/api/browser";
import { mergeEvents } from "@pko/records/browser";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import { Denied, Empty, Notice, PageTitle, Tabs, WatchNotice } from "../../components/common.tsx";
import { ResultBadge } from "../../components/icon.tsx";
import { useContent, type Content } from "../../data/record-content.ts";
import { useLog, useWatch, type WatchedLog } from "../../data/watches.ts";
import { runLog } from "../../lib/pod-log.ts";
import { paths, runTabs, type Route, type RunTab } from "../../lib/routes.ts";
import { runModel, type RunModel } from "../../lib/run.ts";
import { withoutEscapes } from "../../lib/search-log.ts";
import { ChangesTab } from "./changes.tsx";
import { DiagnosticsTab } from "./diagnostics.tsx";
import { LogTab } from "./log.tsx";
import { RunSummary } from "./summary.tsx";
import { TimelineTab } from "./timeline.tsx";

/** What the tabs show. */
export interface RunView {
  readonly namespace: string;
  readonly name: string;
  readonly update?: Update;
  readonly record?: UpdateRecordContent;
  readonly model: RunModel;
  readonly lines: readonly string[];
  readonly isRunning: boolean;
}

type RunRoute = Extract<Route, { page: "run" }>;

export function RunPage(route: RunRoute) {
  const { namespace, name, tab } = route;
  const updates = useWatch<Update>("updates", { namespace, name }).value;
  const records = useWatch<UpdateRecord>("updaterecords", { namespace, name }).value;
  const [update] = updates.items;
  const [record] = records.items;
  const log = useLog(logTarget({ update, record, tab })).value;
  const content = useContent(record).value;
  const view = useRunView({ route, update, record, log, content });
  if (!update && !record) {
    const isSynced = updates.state.kind === "synced" && records.state.kind !== "loading";
    return (
      <>
        <PageTitle title={name} />
        <WatchNotice watched={updates} what="the Update" />
        <WatchNotice watched={records} what="the record of the run" />
        {isSynced ? <NoRun namespace={namespace} name={name} /> : null}
      </>
    );
  }
  return (
    <>
      <Breadcrumb view={view} />
      <PageTitle title={name}>
        <ResultBadge result={record?.record.result ?? updateState({ status: update?.status ?? {} })} />
      </PageTitle>
      <RunSummary {...view} />
      <LogNotice log={log} view={view} />
      <Missing view={view} content={content} />
      <Tabs label="About this run" tabs={tabsOf(view, tab)} />
      {contents[tab](view)}
    </>
  );
}

interface LogNeed {
  readonly update: Update | undefined;
  readonly record: UpdateRecord | undefined;
  readonly tab: RunTab;
}

/** The record of a finished run has its events, but not what Pulumi printed. */
function logTarget({ update, record, tab }: LogNeed) {
  const workspace = update?.spec?.workspaceName;
  if (!update || !workspace || updateState(update) === "waiting") return undefined;
  const isPrintedOutputMissing = tab === "log" && update.status?.stdout === undefined;
  if (record && !isPrintedOutputMissing) return undefined;
  return { namespace: update.metadata.namespace ?? "", pod: podNameOf(workspace), container: pulumiContainer };
}

interface Parts {
  readonly route: RunRoute;
  readonly update: Update | undefined;
  readonly record: UpdateRecord | undefined;
  readonly log: WatchedLog;
  readonly content: Content;
}

function useRunView({ route: { namespace, name }, update, record, log, content }: Parts): RunView {
  const uid = update?.metadata.uid ?? "";
  const ofPod = useMemo(() => runLog(log.lines, uid), [log.lines, uid]);
  const recorded = content === "loading" || content === undefined ? undefined : content.events;
  const model = useMemo(() => runModel(mergeEvents(recorded ?? [], ofPod.events)), [recorded, ofPod]);
  const kept = update?.status?.stdout?.text;
  const lines = ofPod.lines.length > 0 ? ofPod.lines : kept === undefined ? [] : withoutEscapes(kept).split("\n");
  return {
    namespace,
    name,
    ...(update && { update }),
    ...(record && { record: record.record }),
    model,
    lines,
    isRunning: !record && update !== undefined && updateState(update) === "running",
  };
}

const contents: Readonly<Record<RunTab, (view: RunView) => JSX.Element>> = {
  timeline: (view) => <TimelineTab {...view} />,
  diagnostics: (view) => <DiagnosticsTab {...view} />,
  changes: (view) => <ChangesTab {...view} />,
  log: (view) => <LogTab {...view} />,
};

const tabNames: Readonly<Record<RunTab, string>> = {
  timeline: "Timeline",
  diagnostics: "Diagnostics",
  changes: "Changes",
  log: "Log",
};

function tabsOf(view: RunView, current: RunTab) {
  const { resources, diagnostics } = view.model;
  const counts: Partial<Record<RunTab, number>> = {
    diagnostics: diagnostics.length,
    changes: resources.filter(({ op }) => op !== "same").length,
  };
  return runTabs.map((tab) => {
    const [name, href] = [tabNames[tab], paths.run(view, tab)];
    return { name, href, isCurrent: tab === current, count: counts[tab] };
  });
}

/** A Workspace has the name of its Stack. */
function Breadcrumb({ view: { namespace, record, update } }: { readonly view: RunView }) {
  const stack = record?.stackName ?? update?.spec?.workspaceName;
  return (
    <nav class="breadcrumb" aria-label="Breadcrumb">
      <a href={paths.fleet}>Stacks</a> / <a href={`/?namespace=${encodeURIComponent(namespace)}`}>{namespace}</a>
      {stack === undefined ? null : (
        <>
          {" "}
          / <a href={paths.stack({ namespace, name: stack })}>{stack}</a> /{" "}
          <a href={paths.stack({ namespace, name: stack }, "runs")}>Runs</a>
        </>
      )}
    </nav>
  );
}

function LogNotice({ log, view }: { readonly log: WatchedLog; readonly view: RunView }) {
  if (log.denied !== undefined)
    return <Denied what="the live events and the log of this run" permission={log.denied} />;
  if (log.problem === "" || !view.isRunning) return null;
  return (
    <Notice tone="warning" title="The log of the pod cannot be read, and is retried.">
      <p>{log.problem}</p>
    </Notice>
  );
}

/** A gap is shown: a chart without a word about it would look complete. */
function Missing({ view, content }: { readonly view: RunView; readonly content: Content }) {
  const lost = view.model.gaps.reduce((sum, { from, to }) => sum + to - from + 1, 0);
  const { events = 0, values = 0 } = content === "loading" || !content ? {} : content.omitted;
  if (lost === 0 && events === 0 && values === 0) return null;
  const reasons = [
    lost > 0 && `${lost} ${lost === 1 ? "event is" : "events are"} missing, for example because the log was rotated.`,
    events > 0 && `${events} did not fit into the record.`,
    values > 0 && `${values} old and new values of properties did not fit into the record.`,
  ];
  return (
    <Notice tone="warning" title="What you see of this run is not complete.">
      <p>{reasons.filter(Boolean).join(" ")}</p>
    </Notice>
  );
}

const NoRun = ({ namespace, name }: { readonly namespace: string; readonly name: string }) => (
  <Empty title={`There is no run ${name} in namespace ${namespace}.`}>
    <p>Neither an Update nor the record of one has this name. Both are deleted some time after the run.</p>
  </Empty>
);
