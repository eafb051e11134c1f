/** One Stack: why it is in its state, what happens next, and everything about it. */
import type { Stack, Update, UpdateRecord } from "@pko/api/browser";
import { stackNameLabel } from "@pko/api/browser";
import type { JSX } from "preact";

import { Empty, PageTitle, Tabs, WatchNotice, type Tab } from "../../components/common.tsx";
import { StateBadge } from "../../components/icon.tsx";
import { useWatch, type Watched } from "../../data/watches.ts";
import { explain } from "../../lib/explain.ts";
import { paths, stackTabs, type Route, type StackTab } from "../../lib/routes.ts";
import { runsOf } from "../../lib/runs.ts";
import { StackActions } from "./actions.tsx";
import { DriftTab } from "./drift.tsx";
import { EventsTab } from "./events.tsx";
import { InputsTab } from "./inputs.tsx";
import { OutputsTab } from "./outputs.tsx";
import { OverviewTab } from "./overview.tsx";
import { ResourcesTab } from "./resources.tsx";
import { RunsTab } from "./runs.tsx";
import { YamlTab } from "./yaml.tsx";

/** What the tabs show. */
export interface StackView {
  readonly stack: Stack;
  readonly updates: Watched<Update>;
  readonly records: Watched<UpdateRecord>;
}

type StackRoute = Extract<Route, { page: "stack" }>;

export function StackPage({ namespace, name, tab }: StackRoute) {
  const stacks = useWatch<Stack>("stacks", { namespace, name }).value;
  const labelSelector = `${stackNameLabel}=${name}`;
  const updates = useWatch<Update>("updates", { namespace, labelSelector }).value;
  const records = useWatch<UpdateRecord>("updaterecords", { namespace, labelSelector }).value;
  const [stack] = stacks.items;
  if (!stack) {
    return (
      <>
        <PageTitle title={name} />
        <WatchNotice watched={stacks} what={`the Stack ${namespace}/${name}`} />
        {stacks.state.kind === "synced" ? <NoStack namespace={namespace} name={name} /> : null}
      </>
    );
  }
  const view: StackView = { stack, updates, records };
  return (
    <>
      <Breadcrumb namespace={namespace} />
      <PageTitle title={name}>
        <StateBadge state={explain(stack).state} />
        <StackActions stack={stack} />
      </PageTitle>
      <WatchNotice watched={stacks} what="the Stack" />
      <Tabs label="About this Stack" tabs={tabsOf(view, { namespace, name, tab })} />
      {contents[tab](view)}
    </>
  );
}

const contents: Readonly<Record<StackTab, (view: StackView) => JSX.Element>> = {
  overview: (view) => <OverviewTab {...view} />,
  resources: (view) => <ResourcesTab {...view} />,
  runs: (view) => <RunsTab {...view} />,
  outputs: (view) => <OutputsTab {...view} />,
  inputs: (view) => <InputsTab {...view} />,
  drift: (view) => <DriftTab {...view} />,
  events: (view) => <EventsTab {...view} />,
  yaml: (view) => <YamlTab {...view} />,
};

const tabNames: Readonly<Record<StackTab, string>> = {
  overview: "Overview",
  resources: "Resources",
  runs: "Runs",
  outputs: "Outputs",
  inputs: "Inputs",
  drift: "Drift",
  events: "Events",
  yaml: "YAML",
};

function tabsOf({ stack, updates, records }: StackView, route: Omit<StackRoute, "page">): Tab[] {
  const counts: Partial<Record<StackTab, number>> = {
    runs: runsOf(updates.items, records.items).length,
    outputs: Object.keys(stack.status?.outputs ?? {}).length,
    drift: stack.status?.drift?.resources.length ?? 0,
  };
  return stackTabs.map((tab) => {
    const [name, href] = [tabNames[tab], paths.stack(route, tab)];
    return { name, href, isCurrent: tab === route.tab, count: counts[tab] };
  });
}

const Breadcrumb = ({ namespace }: { readonly namespace: string }) => (
  <nav class="breadcrumb" aria-label="Breadcrumb">
    <a href={paths.fleet}>Stacks</a> / <a href={`/?namespace=${encodeURIComponent(namespace)}`}>{namespace}</a>
  </nav>
);

const NoStack = ({ namespace, name }: { readonly namespace: string; readonly name: string }) => (
  <Empty title={`There is no Stack ${name} in namespace ${namespace}.`}>
    <p>
      It may have been deleted. <a href={paths.fleet}>Show all Stacks</a>
    </p>
  </Empty>
);
