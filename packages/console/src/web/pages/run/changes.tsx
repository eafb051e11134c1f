/** What a run changed, or would change: replacements and deletions first, with the properties. */
import { Empty } from "../../components/common.tsx";
import { opClass, opSymbol, opText, type OpClass, type RunResource } from "../../lib/run.ts";
import type { RunView } from "./index.tsx";

const rank: Readonly<Record<OpClass, number>> = { danger: 0, update: 1, create: 2, plain: 3 };

export function ChangesTab({ model }: RunView) {
  return <ChangeList resources={model.resources} />;
}

export function ChangeList({ resources }: { readonly resources: readonly RunResource[] }) {
  const changed = resources
    .filter(({ op }) => op !== "same" && op !== "read")
    .toSorted((a, b) => rank[opClass(a.op)] - rank[opClass(b.op)] || a.urn.localeCompare(b.urn));
  if (changed.length === 0) return <Empty title="No resource changes." />;
  return (
    <ul class="changes" aria-label="Changes">
      {changed.map((resource) => (
        <Change key={`${resource.op} ${resource.urn}`} resource={resource} />
      ))}
    </ul>
  );
}

function Change({ resource }: { readonly resource: RunResource }) {
  const { op, name, type, urn, changes, omittedChanges, replaceKeys } = resource;
  return (
    <li class={`change change-${opClass(op)}`}>
      <p title={urn}>
        <span class={`op op-${opClass(op)}`}>
          <span aria-hidden="true">{opSymbol(op)} </span>
          {opText(op)}
        </span>{" "}
        <strong>{name}</strong> <span class="muted">{type}</span>
        {replaceKeys.length > 0 ? <span class="muted"> because of {replaceKeys.join(", ")}</span> : null}
      </p>
      {changes.length > 0 ? (
        <ul class="property-changes">
          {changes.map((change) => (
            <li key={change.path}>
              <code>{change.path}</code>
              {change.old === undefined ? null : <del>{change.old}</del>}
              {change.old !== undefined && change.new !== undefined ? <span aria-hidden="true"> → </span> : null}
              {change.new === undefined ? null : <ins>{change.new}</ins>}
              {change.kind.endsWith("-replace") ? <span class="muted"> (requires replacement)</span> : null}
            </li>
          ))}
        </ul>
      ) : null}
      {omittedChanges > 0 ? <p class="muted">and {omittedChanges} more properties</p> : null}
    </li>
  );
}
