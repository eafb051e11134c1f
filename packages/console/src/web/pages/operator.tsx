/** Whether the operator runs, which versions are in use, and whether it is suspended. */
import { leaseName, suspendAnnotation, type Workspace } from "@pko/api/browser";
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import {
  Denied,
  Empty,
  Facts,
  Loading,
  Notice,
  PageTitle,
  Section,
  TableFrame,
  Time,
  WatchNotice,
} from "../components/common.tsx";
import { Badge, Icon, stateLooks } from "../components/icon.tsx";
import { ApiError, errorText, kubernetes } from "../data/api.ts";
import { now } from "../data/clock.ts";
import { useFleet } from "../data/fleet.ts";
import { useWatch } from "../data/watches.ts";
import { countStates, filterToQuery, fleetRow, noFilter } from "../lib/fleet.ts";
import { operatorHealth, type Lease } from "../lib/operator-health.ts";
import { replicasOf, type Pod, type Replica } from "../lib/operator-pods.ts";
import { paths } from "../lib/routes.ts";

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
      <Replicas namespace={health.namespace} holder={health.holder} />
    </Section>
  );
}

/** The label that the chart and the quickstart manifest set. */
const labelSelector = "app.kubernetes.io/name=pulumi-kubernetes-operator";

function Replicas({ namespace, holder }: { readonly namespace: string; readonly holder: string }) {
  const pods = useWatch<Pod>("pods", { namespace, labelSelector }).value;
  const replicas = replicasOf(pods.items, holder);
  return (
    <>
      <WatchNotice watched={pods} what="the pods of the operator" />
      {replicas.length === 0 && pods.state.kind === "synced" ? (
        <p class="muted">
          No pod of the namespace has the label <code>{labelSelector}</code>.
        </p>
      ) : null}
      {replicas.length > 0 ? <ReplicaTable replicas={replicas} /> : null}
    </>
  );
}

const ReplicaTable = ({ replicas }: { readonly replicas: readonly Replica[] }) => (
  <TableFrame label="Replicas">
    <table>
      <thead>
        <tr>
          {["Pod", "State", "Role", "Restarts", "Created", "Image"].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {replicas.map(({ name, state, isReady, isLeader, restarts, createdAt, image }) => (
          <tr key={name}>
            <td class="name-cell">{name}</td>
            <td>
              <Badge icon={isReady ? "check" : "triangle"} tone={isReady ? "good" : "warning"} text={state} />
            </td>
            <td>{isLeader ? "leader" : "standby"}</td>
            <td>{restarts}</td>
            <td>
              <Time time={createdAt} />
            </td>
            <td>
              <code>{image}</code>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </TableFrame>
);

function FleetSection() {
  const { stacks, namespace } = useFleet();
  return (
    <Section title="Stacks">
      <WatchNotice watched={stacks} what="Stacks" />
      <div class="state-counts">
        {countStates(stacks.items.map(fleetRow)).map(({ state, count }) => (
          <a
            key={state}
            class={`button state-count tone-${stateLooks[state].tone}`}
            href={`${paths.fleet}${filterToQuery({ ...noFilter, namespace, state })}`}
          >
            <Icon name={stateLooks[state].icon} />
            {state} <span class="count">{count}</span>
          </a>
        ))}
      </div>
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
      <Facts
        facts={versions.map(([version, count]) => [version, count === 1 ? "1 Workspace" : `${count} Workspaces`])}
      />
    </Section>
  );
}
