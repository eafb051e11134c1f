/** The plans that wait for a decision, and one of them in detail. */
import { relative, type ApprovalRequest, type Stack, type UpdateRecord } from "@pko/api/browser";
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import {
  Empty,
  Facts,
  MissingPermission,
  Notice,
  PageTitle,
  Section,
  Time,
  WatchNotice,
} from "../components/common.tsx";
import { Dialog, perform } from "../components/dialog.tsx";
import { NamespaceChooser } from "../components/namespace-chooser.tsx";
import { decide } from "../data/actions.ts";
import { session } from "../data/api.ts";
import { now } from "../data/clock.ts";
import { useFleet } from "../data/fleet.ts";
import { useFocusAfterRemoval } from "../data/focus.ts";
import { replaceQuery } from "../data/location.ts";
import { approvalCreation, mayI, permissionText } from "../data/permissions.ts";
import { useContent } from "../data/record-content.ts";
import { useWatch } from "../data/watches.ts";
import { dependencyGraph, dependentsOf, stackId, type DependencyGraph } from "../lib/dependencies.ts";
import { parsePlan, type PlannedChange } from "../lib/plan.ts";
import { paths, type Route } from "../lib/routes.ts";
import { opSymbol, opText, runModel } from "../lib/run.ts";
import { ChangeList } from "./run/changes.tsx";

interface Pending {
  readonly stack: Stack;
  readonly request: ApprovalRequest;
}

const pendingIn = (stacks: readonly Stack[]): Pending[] =>
  stacks
    .flatMap((stack) => {
      const request = stack.status?.approval;
      return request?.state === "Pending" ? [{ stack, request }] : [];
    })
    .toSorted((a, b) => a.request.expiresAt.localeCompare(b.request.expiresAt));

export function ApprovalsPage() {
  const { stacks, needsNamespace } = useFleet();
  const pending = pendingIn(stacks.items);
  const graph = useMemo(() => dependencyGraph(stacks.items), [stacks.items]);
  return (
    <>
      <PageTitle title="Approvals">
        <p class="subtitle">{pending.length === 0 ? "" : `${pending.length} waiting for a decision`}</p>
      </PageTitle>
      <WatchNotice watched={stacks} what="Stacks" />
      {needsNamespace ? (
        <NamespaceChooser onChoose={(namespace) => replaceQuery(`?namespace=${encodeURIComponent(namespace)}`)} />
      ) : null}
      {pending.length === 0 && stacks.state.kind === "synced" ? (
        <Empty title="No plan waits for a decision.">
          <p>Stacks with spec.approval appear here when an update needs an approval.</p>
        </Empty>
      ) : null}
      <ul class="cards" aria-label="Plans that wait for a decision">
        {pending.map((each) => (
          <PendingCard key={each.request.updateUid} {...each} graph={graph} />
        ))}
      </ul>
    </>
  );
}

/** A card is not the plan: whoever decides opens it. */
const maxListed = 3;

function PendingCard({ stack, request, graph }: Pending & { readonly graph: DependencyGraph }) {
  const { namespace = "", name = "" } = stack.metadata;
  const { headline, changes } = parsePlan(request.summary);
  const dangerous = changes.filter(({ tone }) => tone === "danger");
  const after = namesAfter(stack, graph);
  return (
    <li class={dangerous.length > 0 ? "card card-danger" : "card"}>
      <h2>
        <a href={paths.approval({ namespace, name })}>{name}</a> <span class="muted">{namespace}</span>
      </h2>
      <p>
        {headline}
        {dangerous.length > 0 ? <strong class="danger-text"> {dangerous.length} destructive</strong> : null}
      </p>
      <PlannedList changes={dangerous.slice(0, maxListed)} />
      {dangerous.length > maxListed ? <p class="muted">and {dangerous.length - maxListed} more</p> : null}
      <p>{afterText(after)}</p>
      <p class="muted">
        The plan expires <Time time={request.expiresAt} />.
      </p>
    </li>
  );
}

/** The Stacks of the namespace that depend on this one, directly or through others. */
function namesAfter({ metadata: { namespace = "", name = "" } }: Stack, graph: DependencyGraph): string[] {
  return dependentsOf(stackId(namespace, name), graph).map((id) => id.slice(namespace.length + 1));
}

const afterText = (names: readonly string[]): string =>
  names.length === 0 ? "No other Stack runs afterwards." : `Stacks that run afterwards: ${names.join(", ")}.`;

const PlannedList = ({ changes }: { readonly changes: readonly PlannedChange[] }) => (
  <ul class="plain-list">
    {changes.map(({ op, text, tone }) => (
      <li key={`${op} ${text}`}>
        <span class={`op op-${tone}`}>
          <span aria-hidden="true">{opSymbol(op)} </span>
          {opText(op)}
        </span>{" "}
        {text}
      </li>
    ))}
  </ul>
);

export function ApprovalPage({ namespace, name }: Extract<Route, { page: "approval" }>) {
  const stacks = useWatch<Stack>("stacks", { namespace }).value;
  const stack = stacks.items.find(({ metadata }) => metadata.name === name);
  const request = stack?.status?.approval;
  return (
    <>
      <nav class="breadcrumb" aria-label="Breadcrumb">
        <a href={paths.approvals}>Approvals</a> / <a href={paths.stack({ namespace, name })}>{name}</a>
      </nav>
      <PageTitle title={`Plan of ${name}`} />
      <WatchNotice watched={stacks} what={`the Stacks of namespace ${namespace}`} />
      {stack && request ? <PlanView stack={stack} request={request} stacks={stacks.items} /> : null}
      {stacks.state.kind === "synced" && !request ? (
        <Empty title={stack ? "This Stack has no plan that needs a decision." : `There is no Stack ${name}.`} />
      ) : null}
    </>
  );
}

function PlanView({ stack, request, stacks }: Pending & { readonly stacks: readonly Stack[] }) {
  const { namespace = "", name = "" } = stack.metadata;
  const { updateName, expiresAt, digest, unknownInputs = 0 } = request;
  const after = namesAfter(stack, dependencyGraph(stacks));
  return (
    <>
      <Facts
        facts={[
          ["State", request.state],
          ["Preview", <a href={paths.run({ namespace, name: updateName })}>{updateName}</a>],
          ["Expires", <Time time={expiresAt} />],
          ["Digest", <code class="digest">{digest}</code>],
          ["Decided by", request.decidedBy],
          ["Reason", request.reason],
        ]}
      />
      {unknownInputs > 0 ? <Notice tone="warning" title={unknownText(unknownInputs)} /> : null}
      <Decision stack={stack} request={request} after={after} />
      <PlanChanges namespace={namespace} request={request} />
      <Section title="Stacks that will run afterwards">
        {after.length === 0 ? (
          <p class="muted">No Stack of this namespace depends on {name}.</p>
        ) : (
          <ul class="plain-list">
            {after.map((dependent) => (
              <li key={dependent}>
                <a href={paths.stack({ namespace, name: dependent })}>{dependent}</a>
              </li>
            ))}
          </ul>
        )}
      </Section>
    </>
  );
}

const unknownText = (count: number): string =>
  `${count === 1 ? "1 input value" : `${count} input values`} will be known only while the plan is applied.`;

/** The record of the preview has the properties; the summary in the status has only the resources. */
function PlanChanges({ namespace, request }: { readonly namespace: string; readonly request: ApprovalRequest }) {
  const records = useWatch<UpdateRecord>("updaterecords", { namespace, name: request.updateName }).value;
  const content = useContent(records.items[0]).value;
  const plan = parsePlan(request.summary);
  return (
    <Section title={`Changes: ${plan.headline}`}>
      {content !== undefined && content !== "loading" ? (
        <ChangeList resources={runModel(content.events).resources} />
      ) : (
        <ul class="changes" aria-label="Changes">
          {plan.changes.map(({ op, text, tone }) => (
            <li key={`${op} ${text}`} class={`change change-${tone}`}>
              <span class={`op op-${tone}`}>
                <span aria-hidden="true">{opSymbol(op)} </span>
                {opText(op)}
              </span>{" "}
              {text}
            </li>
          ))}
          {plan.rest === "" ? null : <li class="muted">{plan.rest}</li>}
        </ul>
      )}
    </Section>
  );
}

interface Undecided extends Pending {
  /** The Stacks that run afterwards. */
  readonly after: readonly string[];
}

function Decision({ stack, request, after }: Undecided) {
  const permission = approvalCreation(stack.metadata.namespace ?? "");
  const answer = mayI(permission).value;
  if (request.state !== "Pending") return null;
  if (relative(request.expiresAt, now.value).endsWith("ago")) {
    return <Notice tone="warning" title="The plan has expired. The operator makes a new one." />;
  }
  if (answer === "denied") {
    return (
      <MissingPermission
        title="You do not have permission to approve or reject this plan."
        permission={permissionText(permission)}
      />
    );
  }
  return answer === "unknown" ? null : <DecisionForm stack={stack} request={request} after={after} />;
}

function DecisionForm({ stack, request, after }: Undecided) {
  const { namespace = "" } = stack.metadata;
  const asked = useSignal<"Approve" | "Reject" | undefined>(undefined);
  const reason = useSignal("");
  useFocusAfterRemoval();
  const confirm = (): void => {
    const decision = asked.value;
    asked.value = undefined;
    if (decision === undefined) return;
    const done = decision === "Approve" ? "The plan is approved." : "The plan is rejected.";
    void perform(async () => await decide(request, { namespace, decision, reason: reason.value }), done);
  };
  return (
    <div class="decision">
      <label class="grow">
        <span>Reason (optional, stored in the Approval)</span>
        <input
          value={reason.value}
          maxLength={1024}
          onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
        />
      </label>
      <button type="button" class="primary" onClick={() => (asked.value = "Approve")}>
        Approve
      </button>
      <button type="button" class="danger" onClick={() => (asked.value = "Reject")}>
        Reject
      </button>
      {asked.value ? (
        <Dialog
          title={`${asked.value} the plan of ${stack.metadata.name ?? ""}?`}
          confirmText={asked.value}
          isDangerous={asked.value === "Reject"}
          onCancel={() => (asked.value = undefined)}
          onConfirm={confirm}
        >
          <p>
            {parsePlan(request.summary).headline}. The decision is stored in the name of {session.value?.user ?? "you"}.
          </p>
          {asked.value === "Approve" ? <p>{afterText(after)}</p> : null}
        </Dialog>
      ) : null}
    </div>
  );
}
