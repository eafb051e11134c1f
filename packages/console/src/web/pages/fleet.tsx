/** All Stacks, those that need attention first. */
import { useMemo, useRef } from "preact/hooks";
import type { Stack } from "@pko/api/browser";

import { Empty, Notice, PageTitle, Time, WatchNotice } from "../components/common.tsx";
import { Icon, StateBadge, stateLooks } from "../components/icon.tsx";
import { NamespaceChooser } from "../components/namespace-chooser.tsx";
import { VirtualList } from "../components/virtual-list.tsx";
import { useFleet, type Fleet } from "../data/fleet.ts";
import { useFocusAfterRemoval } from "../data/focus.ts";
import { query, replaceQuery } from "../data/location.ts";
import { isNarrow } from "../data/media.ts";
import { useShortcut } from "../data/shortcuts.ts";
import {
  countStates,
  countText,
  distinct,
  filterFleet,
  filterFromQuery,
  filterToQuery,
  fleetRow,
  sortFleet,
  type FleetFilter,
  type FleetRow,
} from "../lib/fleet.ts";
import { paths } from "../lib/routes.ts";

/** Objects do not change, so that only new ones are summarized. */
const rowCache = new WeakMap<Stack, FleetRow>();

function rowOf(stack: Stack): FleetRow {
  const row = rowCache.get(stack) ?? fleetRow(stack);
  rowCache.set(stack, row);
  return row;
}

export function FleetPage() {
  const fleet = useFleet();
  if (fleet.needsNamespace) return <ChooseNamespace fleet={fleet} />;
  return <FleetView fleet={fleet} />;
}

function ChooseNamespace({ fleet }: { readonly fleet: Fleet }) {
  const { state } = fleet.stacks;
  return (
    <>
      <PageTitle title="Stacks" />
      <Notice tone="warning" title="You do not have permission to list the Stacks of all namespaces.">
        <p>
          {state.kind === "denied" ? (
            <>
              The missing permission is <code>{state.permission}</code>.{" "}
            </>
          ) : null}
          Choose a namespace whose Stacks you can view.
        </p>
      </Notice>
      <NamespaceChooser onChoose={(namespace) => replaceQuery(`?namespace=${encodeURIComponent(namespace)}`)} />
    </>
  );
}

function FleetView({ fleet }: { readonly fleet: Fleet }) {
  const { items } = fleet.stacks;
  const rows = useMemo(() => sortFleet(items.map(rowOf)), [items]);
  const filter = filterFromQuery(query.value);
  const shown = useMemo(() => filterFleet(rows, filter), [rows, query.value]);
  const isSynced = fleet.stacks.state.kind === "synced";
  return (
    <div class="fleet">
      <PageTitle title="Stacks">
        <p class="subtitle" role="status">
          {countText(shown.length, rows.length)}
          {isSynced ? "" : ", loading…"}
        </p>
      </PageTitle>
      <WatchNotice watched={fleet.stacks} what="Stacks" />
      <StateCounts rows={rows} filter={filter} />
      <Filters rows={rows} filter={filter} />
      {shown.length > 0 ? (
        <VirtualList
          label="Stacks"
          items={shown}
          rowHeight={isNarrow.value ? 104 : 56}
          keyOf={({ namespace, name }) => `${namespace}/${name}`}
          render={(row, tabIndex) => <Row row={row} tabIndex={tabIndex} />}
        />
      ) : null}
      {shown.length === 0 && isSynced ? <NoStacks hasSome={rows.length > 0} /> : null}
    </div>
  );
}

const setFilter = (filter: FleetFilter): void => replaceQuery(filterToQuery(filter));

function StateCounts({ rows, filter }: { readonly rows: readonly FleetRow[]; readonly filter: FleetFilter }) {
  const counts = useMemo(() => countStates(rows), [rows]);
  return (
    <div class="state-counts" role="group" aria-label="Filter by state">
      {counts.map(({ state, count }) => (
        <button
          key={state}
          type="button"
          class={`state-count tone-${stateLooks[state].tone}`}
          aria-pressed={filter.state === state}
          onClick={() => setFilter({ ...filter, state: filter.state === state ? "" : state })}
        >
          <Icon name={stateLooks[state].icon} />
          {state} <span class="count">{count}</span>
        </button>
      ))}
    </div>
  );
}

function Filters({ rows, filter }: { readonly rows: readonly FleetRow[]; readonly filter: FleetFilter }) {
  const search = useRef<HTMLInputElement>(null);
  useShortcut("/", () => search.current?.focus());
  const namespaces = useMemo(() => distinct(rows.map(({ namespace }) => namespace)), [rows]);
  const repositories = useMemo(() => distinct(rows.map(({ repository }) => repository)), [rows]);
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <label class="grow">
        <span>Search</span>
        <input
          ref={search}
          type="search"
          placeholder="Name, message, repository… (press /)"
          value={filter.search}
          onInput={({ currentTarget }) => setFilter({ ...filter, search: currentTarget.value })}
        />
      </label>
      <Choice
        label="Namespace"
        values={namespaces}
        value={filter.namespace}
        onChange={(namespace) => setFilter({ ...filter, namespace })}
      />
      <Choice
        label="Repository"
        values={repositories}
        value={filter.repository}
        onChange={(repository) => setFilter({ ...filter, repository })}
      />
    </form>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly values: readonly string[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Choice({ label, values, value, onChange }: ChoiceProps) {
  const all = values.includes(value) || value === "" ? values : [value, ...values];
  return (
    <label>
      <span>{label}</span>
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">All</option>
        {all.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

function Row({ row, tabIndex }: { readonly row: FleetRow; readonly tabIndex: number }) {
  return (
    <a class="fleet-row" href={paths.stack(row)} tabIndex={tabIndex}>
      <span class="fleet-state">
        <StateBadge state={row.state} />
      </span>
      <span class="fleet-name">
        <strong>{row.name}</strong>
        <span class="muted">{row.namespace}</span>
      </span>
      <span class="fleet-message">
        {row.isDeleting ? <em>Deleting. </em> : null}
        {row.message}
      </span>
      <span class="fleet-time muted">
        {row.next ? (
          <>
            {row.next.what} <Time time={row.next.time} />
          </>
        ) : row.lastUpdateTime === undefined ? (
          "no update yet"
        ) : (
          <>
            updated <Time time={row.lastUpdateTime} />
          </>
        )}
      </span>
    </a>
  );
}

function NoMatch() {
  useFocusAfterRemoval();
  return (
    <Empty title="No Stack matches the filters.">
      <button type="button" onClick={() => replaceQuery("")}>
        Clear the filters
      </button>
    </Empty>
  );
}

const NoStacks = ({ hasSome }: { readonly hasSome: boolean }) =>
  hasSome ? (
    <NoMatch />
  ) : (
    <Empty title="There are no Stacks yet.">
      <p>A Stack names a program and a Pulumi stack. Create one, and it appears here.</p>
    </Empty>
  );
