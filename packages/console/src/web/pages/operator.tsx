/** Whether the operator runs, which versions are in use, and whether it is suspended. */
import { leaseName, suspendAnnotation, type Workspace } from "@pko/api/browser";
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { Denied, Empty, Facts, Loading, Notice, PageTitle, Section, Time, WatchNotice } from "../components/common.tsx";
import { Badge } from "../components/icon.tsx";
import { ApiError, errorText, kubernetes } from "../data/api.ts";
import { now } from "../data/clock.ts";
import { useFleet } from "../data/fleet.ts";
import { useWatch } from "../data/watches.ts";
import { countStates, fleetRow } from "../lib/fleet.ts";
import { operatorHealth, type Lease } from "../lib/operator-health.ts";

type Loaded =
  | { readonly kind: "loading" }
  | { readonly kind: "loaded"; readonly leases: readonly Lease[] }
  | { readonly kind: "denied"; readonly permission: string }
  | { readonly kind: "failed"; readonly message: string };

const leases = signal<Loaded>({ kind: "loading" });
const reloadMs = 10_000;

/** The namespace that the chart and the quickstart manifest use. */
const usualNamespace = "pulumi-kubernetes-operator";
const api = "/apis/coordination.k8s.io/v1";

/** Whoever may not list Leases may be allowed to get the one in the usual namespace. The server adds its name to lists. */
async function readLeases(): Promise<readonly Lease[]> {
  try {
    return (await kubernetes<{ items: Lease[] }>(`${api}/leases`)).items;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    return [await kubernetes<Lease>(`${api}/namespaces/${usualNamespace}/leases/${leaseName}`)];
  }
}

async function load(): Promise<void> {
  try {
    leases.value = { kind: "loaded", leases: await readLeases() };
  } catch (error) {
    const permission = error instanceof ApiError ? error.permission : undefined;
    leases.value =
      permission === undefined ? { kind: "failed", message: errorText(error) } : { kind: "denied", permission };
  }
}

export function OperatorPage() {
  useEffect(() => {
    void load();
    const timer = setInterval(() => void load(), reloadMs);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <PageTitle title="Operator" />
      <Leases loaded={leases.value} />
      <FleetSection />
      <VersionsSection />
    </>
  );
}

function Leases({ loaded }: { readonly loaded: Loaded }) {
  switch (loaded.kind) {
    case "loading":
      return <Loading what="the Lease of the operator" />;
    case "denied":
      return <Denied what="the Lease of the operator" permission={loaded.permission} />;
    case "failed":
      return <Notice tone="bad" title={loaded.message} />;
    case "loaded":
      return loaded.leases.length === 0 ? (
        <Empty title="No operator has ever led in this cluster.">
          <p>Install the operator, or wait until it has started.</p>
        </Empty>
      ) : (
        <>
          {loaded.leases.map((lease) => (
            <LeaseSection key={lease.metadata.namespace} lease={lease} />
          ))}
        </>
      );
  }
}

function LeaseSection({ lease }: { readonly lease: Lease }) {
  const health = operatorHealth(lease, now.value);
  return (
    <Section title={`Operator in namespace ${health.namespace}`}>
      {health.isSuspended ? (
        <Notice tone="warning" title="The operator is suspended: nothing starts.">
          <p>
            To resume:{" "}
            <code>
              kubectl annotate lease {leaseName} -n {health.namespace} {suspendAnnotation}-
            </code>
          </p>
        </Notice>
      ) : null}
      <Facts
        facts={[
          [
            "State",
            health.isLeading ? (
              <Badge icon="check" tone="good" text="running" />
            ) : (
              <Badge icon="cross" tone="bad" text="not running" />
            ),
          ],
          ["Leader", health.holder && <code>{health.holder}</code>],
          ["Lease renewed", health.renewTime && <Time time={health.renewTime} />],
          ["Leading since", health.acquireTime && <Time time={health.acquireTime} />],
          ["Changes of leader", String(health.transitions)],
        ]}
      />
    </Section>
  );
}

function FleetSection() {
  const { stacks } = useFleet();
  return (
    <Section title="Stacks">
      <WatchNotice watched={stacks} what="Stacks" />
      <Facts facts={countStates(stacks.items.map(fleetRow)).map(({ state, count }) => [state, String(count)])} />
    </Section>
  );
}

/** Of the Pulumi CLI, by the Workspaces. */
function VersionsSection() {
  const workspaces = useWatch<Workspace>("workspaces", {}).value;
  const counts = new Map<string, number>();
  for (const { status } of workspaces.items) {
    const version = status?.pulumiVersion ?? "not known yet";
    counts.set(version, (counts.get(version) ?? 0) + 1);
  }
  const versions = [...counts].toSorted(([a], [b]) => a.localeCompare(b, undefined, { numeric: true }));
  return (
    <Section title="Versions of the Pulumi CLI in workspaces">
      <WatchNotice watched={workspaces} what="Workspaces" />
      {versions.length === 0 && workspaces.state.kind === "synced" ? (
        <p class="muted">There are no Workspaces.</p>
      ) : null}
      <Facts facts={versions.map(([version, count]) => [version, `${count} Workspaces`])} />
    </Section>
  );
}
