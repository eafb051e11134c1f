/** What the last drift check has found. */
import type { StackDrift } from "@pko/api/browser";
import { urnName, urnType } from "@pko/records/browser";

import { Empty, Facts, TableFrame, Time } from "../../components/common.tsx";
import { paths } from "../../lib/routes.ts";
import type { StackView } from "./index.tsx";

export function DriftTab({ stack }: StackView) {
  const { namespace = "" } = stack.metadata;
  const drift = stack.status?.drift;
  if (!drift) {
    return (
      <Empty title="The Stack has not been checked for drift.">
        <p>Set spec.driftDetection to check it on a schedule, or request a check above.</p>
      </Empty>
    );
  }
  const { checkedAt, updateName, summary, corrected, resources, failures } = drift;
  return (
    <>
      <Facts
        facts={[
          ["Checked", <Time time={checkedAt} />],
          ["Run", updateName && <a href={paths.run({ namespace, name: updateName })}>{updateName}</a>],
          ["Result", summary ?? (resources.length === 0 ? "no drift" : undefined)],
          ["Failed checks in a row", failures ? String(failures) : undefined],
          [
            "Corrected",
            corrected && <a href={paths.run({ namespace, name: corrected.updateName })}>{corrected.summary}</a>,
          ],
        ]}
      />
      {resources.length > 0 ? <Resources drift={drift} /> : null}
    </>
  );
}

const Resources = ({ drift: { resources, omitted = 0 } }: { readonly drift: StackDrift }) => (
  <>
    <TableFrame label="Resources that differ">
      <table>
        <thead>
          <tr>
            <th scope="col">Resource</th>
            <th scope="col">Outside of Pulumi</th>
            <th scope="col">Properties</th>
          </tr>
        </thead>
        <tbody>
          {resources.map(({ urn, operation, properties = [] }) => (
            <tr key={urn}>
              <td title={urn}>
                <strong>{urnName(urn)}</strong> <span class="muted">{urnType(urn)}</span>
              </td>
              <td>{operation === "delete" ? "deleted" : "changed"}</td>
              <td class="wide-cell">{properties.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
    {omitted > 0 ? <p class="muted">and {omitted} more resources</p> : null}
  </>
);
