/** The Kubernetes events about a Stack, its Workspace and its Updates. */
import { Empty, TableFrame, Time, WatchNotice } from "../../components/common.tsx";
import { Badge } from "../../components/icon.tsx";
import { useWatch } from "../../data/watches.ts";
import { aboutStack, type KubernetesEvent } from "../../lib/events.ts";
import type { StackView } from "./index.tsx";

export function EventsTab({ stack, updates }: StackView) {
  const { namespace = "", name = "" } = stack.metadata;
  const events = useWatch<KubernetesEvent>("events", { namespace }).value;
  const names = new Set(updates.items.map(({ metadata }) => metadata.name ?? ""));
  const rows = aboutStack(events.items, { stack: name, updates: names });
  if (rows.length === 0) {
    return (
      <>
        <WatchNotice watched={events} what="events" />
        {events.state.kind === "synced" ? (
          <Empty title="There are no events.">
            <p>The API server keeps events for about an hour.</p>
          </Empty>
        ) : null}
      </>
    );
  }
  return (
    <TableFrame label="Events">
      <table>
        <thead>
          <tr>
            <th scope="col">Type</th>
            <th scope="col">Reason</th>
            <th scope="col">Object</th>
            <th scope="col">Last seen</th>
            <th scope="col">Message</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, type, reason, object, time, message }) => (
            <tr key={id}>
              <td>
                {type === "Warning" ? (
                  <Badge icon="triangle" tone="warning" text={type} />
                ) : (
                  <Badge icon="check" tone="muted" text={type} />
                )}
              </td>
              <td>{reason}</td>
              <td>{object}</td>
              <td>
                <Time time={time} />
              </td>
              <td class="wide-cell">{message}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}
