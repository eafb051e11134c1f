/** Why a Stack is in its state, what happens next and when, and its last update. */
import { withoutPassword, type LastUpdate, type Stack } from "@pko/api/browser";
import type { JSX } from "preact";

import { ExternalLink, Facts, Section, Time, WatchNotice } from "../../components/common.tsx";
import { Badge, ResultBadge, stateLooks } from "../../components/icon.tsx";
import { useWatch } from "../../data/watches.ts";
import { explain, type Explanation, type NextStep } from "../../lib/explain.ts";
import { neededStacks } from "../../lib/dependencies.ts";
import { rootCause, waitsForOthers } from "../../lib/root-cause.ts";
import { paths } from "../../lib/routes.ts";
import type { StackView } from "./index.tsx";

export function OverviewTab({ stack }: StackView) {
  const explanation = explain(stack);
  const { lastUpdate } = stack.status ?? {};
  return (
    <div class="columns">
      <div>
        <WhySection stack={stack} explanation={explanation} />
        {waitsForOthers(stack) ? <RootCauseSection stack={stack} /> : null}
        <Section title="What happens next">
          <p class="next">{nextText(stack, explanation.next)}</p>
        </Section>
        {lastUpdate ? <LastUpdateSection stack={stack} last={lastUpdate} /> : null}
      </div>
      <div>
        <AboutSection stack={stack} />
        <ConditionsSection stack={stack} />
      </div>
    </div>
  );
}

interface Explained {
  readonly stack: Stack;
  readonly explanation: Explanation;
}

const WhySection = (explained: Explained) => (
  <Section title="Why it is in this state">
    <ExplanationBox {...explained} />
  </Section>
);

function ExplanationBox({ stack, explanation }: Explained) {
  const { state, reason, meaning, message, since, advice } = explanation;
  const isPending = reason === "AwaitingApproval";
  return (
    <div class={`why tone-${stateLooks[state].tone}`}>
      <p class="why-title">
        <Badge {...stateLooks[state]} text={state} />
        {reason === "" ? null : <code>{reason}</code>}
        {since === undefined ? null : (
          <span class="muted">
            <Time time={since} />
          </span>
        )}
      </p>
      <p>{meaning}</p>
      {message === "" ? null : <pre class="message-text">{message}</pre>}
      {advice === undefined ? null : <p class="advice">{advice}</p>}
      {isPending ? (
        <p>
          <a class="button primary" href={paths.approval(named(stack))}>
            Review the plan
          </a>
        </p>
      ) : null}
    </div>
  );
}

/** The other Stacks of the namespace are watched only while this one waits for some of them. */
function RootCauseSection({ stack }: { readonly stack: Stack }) {
  const { namespace } = named(stack);
  const others = useWatch<Stack>("stacks", { namespace }).value;
  if (others.state.kind !== "synced") return <WatchNotice watched={others} what="the Stacks that it waits for" />;
  const cause = rootCause(stack, others.items);
  if (!cause) return null;
  return (
    <Section title="Root cause">
      <p>
        {cause.path.map((name, at) => (
          <>
            {at === 0 ? "" : at === 1 ? " waits for " : ", which waits for "}
            {at === 0 ? name : <a href={paths.stack({ namespace, name })}>{name}</a>}
          </>
        ))}
        .
      </p>
      <CauseBox name={cause.path.at(-1) ?? ""} stack={cause.stack} />
    </Section>
  );
}

function CauseBox({ name, stack }: { readonly name: string; readonly stack: Stack | undefined }) {
  if (!stack) {
    return (
      <div class={`why tone-${stateLooks.Missing.tone}`}>
        <p class="why-title">
          <Badge {...stateLooks.Missing} text="Missing" />
        </p>
        <p>There is no Stack {name} in this namespace. Create it, or remove it from the prerequisites.</p>
      </div>
    );
  }
  return <ExplanationBox stack={stack} explanation={explain(stack)} />;
}

const named = ({ metadata }: Stack) => ({ namespace: metadata.namespace ?? "", name: metadata.name ?? "" });

function nextText({ metadata }: Stack, next: NextStep): JSX.Element {
  const { namespace = "" } = metadata;
  switch (next.kind) {
    case "running":
      return (
        <>
          Update <a href={paths.run({ namespace, name: next.update })}>{next.update}</a> is running.
        </>
      );
    case "scheduled":
      return <ScheduledText {...next} />;
    case "waiting":
      return (
        <>
          Waiting for {next.for}, since <Time time={next.since} />.{" "}
          {next.next ? <ScheduledText {...next.next} /> : null}
        </>
      );
    case "nothing":
      return <>{next.text}</>;
  }
}

const ScheduledText = ({ what, time }: { readonly what: string; readonly time: string }) => (
  <>
    {capitalized(what)} <Time time={time} /> <span class="muted exact-time">({time})</span>.
  </>
);

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function LastUpdateSection({ stack, last }: { readonly stack: Stack; readonly last: LastUpdate }) {
  const { namespace } = named(stack);
  return (
    <Section title="Last update">
      <Facts
        facts={[
          ["Result", <ResultBadge result={last.state ?? "unknown"} />],
          ["Run", last.name && <a href={paths.run({ namespace, name: last.name })}>{last.name}</a>],
          ["Operation", last.type],
          ["Ended", last.lastResyncTime && <Time time={last.lastResyncTime} />],
          ["Revision", last.lastAttemptedCommit && <code>{last.lastAttemptedCommit}</code>],
          ["Changes", last.summary],
          ["Failures in a row", last.failures ? String(last.failures) : undefined],
          ["Class of the failure", last.failure && <code>{last.failure}</code>],
          ["Warning", last.warning],
          ["Pulumi Cloud", last.permalink && <ExternalLink href={last.permalink} />],
        ]}
      />
      {last.state === "failed" && last.message ? <pre class="message-text">{last.message}</pre> : null}
    </Section>
  );
}

function AboutSection({ stack }: { readonly stack: Stack }) {
  const { spec } = stack;
  const { namespace } = named(stack);
  const needed = neededStacks(spec);
  return (
    <Section title="About">
      <Facts
        facts={[
          ["Namespace", namespace],
          ["Pulumi stack", spec.stack],
          ["Repository", spec.projectRepo && <ExternalLink href={withoutPassword(spec.projectRepo)} />],
          ["Approval", spec.approval?.required],
          ["Drift detection", spec.driftDetection && (spec.driftDetection.action ?? "Report")],
          ["Protected", spec.protect ? "yes" : undefined],
          ["Suspended", spec.suspend ? "yes" : undefined],
          [
            "Depends on",
            needed.length === 0
              ? undefined
              : needed.map((name, at) => (
                  <>
                    {at > 0 ? ", " : ""}
                    <a href={paths.stack({ namespace, name })}>{name}</a>
                  </>
                )),
          ],
        ]}
      />
    </Section>
  );
}

function ConditionsSection({ stack }: { readonly stack: Stack }) {
  const { conditions = [] } = stack.status ?? {};
  if (conditions.length === 0) return null;
  return (
    <Section title="Conditions">
      <ul class="plain-list">
        {conditions.map(({ type, status, reason, lastTransitionTime }) => (
          <li key={type}>
            <strong>{type}</strong> {status} <code>{reason}</code>{" "}
            <span class="muted">
              <Time time={lastTransitionTime} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
