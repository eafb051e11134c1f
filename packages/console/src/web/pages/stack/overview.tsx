/** Why a Stack is in its state, what happens next and when, and its last update. */
import type { LastUpdate, Stack } from "@pko/api/browser";
import type { JSX } from "preact";

import { ExternalLink, Facts, Section, Time } from "../../components/common.tsx";
import { Badge, ResultBadge, stateLooks } from "../../components/icon.tsx";
import { explain, type Explanation, type NextStep } from "../../lib/explain.ts";
import { prerequisiteNames, outputReferences } from "../../lib/dependencies.ts";
import { paths } from "../../lib/routes.ts";
import type { StackView } from "./index.tsx";

export function OverviewTab({ stack }: StackView) {
  const explanation = explain(stack);
  const { lastUpdate } = stack.status ?? {};
  return (
    <div class="columns">
      <div>
        <WhySection stack={stack} explanation={explanation} />
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

function WhySection({ stack, explanation }: { readonly stack: Stack; readonly explanation: Explanation }) {
  const { state, reason, meaning, message, since, advice } = explanation;
  const isPending = reason === "AwaitingApproval";
  return (
    <Section title="Why it is in this state">
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
    </Section>
  );
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
      return (
        <>
          {capitalized(next.what)} <Time time={next.time} /> <span class="muted">({next.time})</span>.
        </>
      );
    case "waiting":
      return (
        <>
          Waiting for {next.for}, <Time time={next.since} /> so far.
        </>
      );
    case "nothing":
      return <>{next.text}</>;
  }
}

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
  const needed = [...new Set([...prerequisiteNames(spec), ...outputReferences(spec).map((each) => each.stack)])];
  return (
    <Section title="About">
      <Facts
        facts={[
          ["Namespace", namespace],
          ["Pulumi stack", spec.stack],
          ["Repository", spec.projectRepo && <ExternalLink href={spec.projectRepo} />],
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
