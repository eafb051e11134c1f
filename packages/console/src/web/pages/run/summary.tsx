/** The facts about a run. */
import { ExternalLink, Facts, Notice, Time, type Fact } from "../../components/common.tsx";
import { now } from "../../data/clock.ts";
import { durationBetween, shortDuration } from "../../lib/gantt.ts";
import { changeText } from "../../lib/runs.ts";
import type { RunView } from "./index.tsx";

export function RunSummary(view: RunView) {
  const { update, record, model } = view;
  const message = record?.message ?? update?.status?.message;
  const hasFailed = record ? record.result !== "succeeded" : update?.status?.errorClass !== undefined;
  return (
    <>
      {view.isRunning ? <Progress view={view} /> : null}
      <Facts facts={[...timeFacts(view), ...originFacts(view), ["Pulumi Cloud", linkOf(view, model.permalink)]]} />
      {hasFailed && message !== undefined ? (
        <Notice tone="bad" title="The run did not succeed.">
          <pre class="message-text">{message}</pre>
        </Notice>
      ) : null}
    </>
  );
}

function linkOf({ update, record }: RunView, fromEvents: string | undefined) {
  const href = record?.permalink ?? update?.status?.permalink ?? fromEvents;
  return href === undefined ? undefined : <ExternalLink href={href} />;
}

function timeFacts({ update, record, isRunning }: RunView): Fact[] {
  const { startTime: start, endTime: end } = record ?? update?.status ?? {};
  const took =
    isRunning && start !== undefined ? shortDuration(now.value - Date.parse(start)) : durationBetween(start, end);
  return [
    ["Operation", record?.type ?? update?.spec?.type],
    ["Started", start && <Time time={start} />],
    [isRunning ? "Running for" : "Took", took],
    ["Changes", update?.status?.summary ?? (record && changeText(record))],
  ];
}

function originFacts({ update, record }: RunView): Fact[] {
  const reason = record?.trigger ?? update?.spec?.message?.replace(/^Stack \S+: /, "");
  const { errorClass } = record ?? update?.status ?? {};
  return [["For", reason], ["Class of the failure", errorClass && <code>{errorClass}</code>], ...recordFacts(record)];
}

function recordFacts(record: RunView["record"]): Fact[] {
  const { approval, revision, versions = {} } = record ?? {};
  const versionTexts = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    ["Revision", revision && <code>{revision}</code>],
    ["Approved by", approval && [approval.decidedBy, approval.reason].filter(Boolean).join(": ")],
    ["Versions", versionTexts.join(", ")],
  ];
}

function Progress({ view: { update } }: { readonly view: RunView }) {
  const { percent, current } = update?.status?.progress ?? {};
  return (
    <div class="progress">
      <progress max={100} {...(percent !== undefined && { value: percent })} aria-label="Progress of the run" />
      <span class="muted">
        {percent === undefined ? "" : `${percent} % `}
        {current ?? ""}
      </span>
    </div>
  );
}
