/** The inputs of a Stack's program and where they come from. */
import { Empty, ExternalLink, Facts, Section, TableFrame } from "../../components/common.tsx";
import { inputsOf, type InputRow } from "../../lib/inputs.ts";
import { paths } from "../../lib/routes.ts";
import type { StackView } from "./index.tsx";

export function InputsTab({ stack }: StackView) {
  const { source, rows } = inputsOf(stack);
  const { namespace = "" } = stack.metadata;
  return (
    <>
      <Section title="Source">
        <Facts
          facts={source.map(({ label, value }) => [
            label,
            label === "Repository" ? <ExternalLink href={value} /> : value,
          ])}
        />
      </Section>
      <Section title="Values">
        {rows.length === 0 ? (
          <Empty title="The spec sets no configuration and no environment variables." />
        ) : (
          <Values rows={rows} namespace={namespace} />
        )}
      </Section>
    </>
  );
}

const Values = ({ rows, namespace }: { readonly rows: readonly InputRow[]; readonly namespace: string }) => (
  <TableFrame label="Values">
    <table>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Kind</th>
          <th scope="col">Origin</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, kind, origin, value, stack }) => (
          <tr key={`${kind} ${name} ${origin}`}>
            <td>
              <code>{name}</code>
            </td>
            <td>{kind}</td>
            <td>{stack === undefined ? origin : <a href={paths.stack({ namespace, name: stack })}>{origin}</a>}</td>
            <td class="wide-cell">
              {value === undefined ? <span class="muted">not shown</span> : <code>{value}</code>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </TableFrame>
);
