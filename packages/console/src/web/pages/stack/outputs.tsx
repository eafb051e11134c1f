/** The outputs of a Stack. The status never contains secret values. */
import { Empty } from "../../components/common.tsx";
import type { StackView } from "./index.tsx";

const placeholders: Readonly<Record<string, string>> = {
  "[secret]": "secret: its value is not shown",
  "[too long]": "too long to be shown",
};

export function OutputsTab({ stack }: StackView) {
  const outputs = Object.entries(stack.status?.outputs ?? {}).toSorted(([a], [b]) => a.localeCompare(b));
  if (outputs.length === 0) return <Empty title="The Stack has no outputs." />;
  return (
    <dl class="outputs">
      {outputs.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <Value value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ value }: { readonly value: unknown }) {
  const placeholder = typeof value === "string" ? placeholders[value] : undefined;
  if (placeholder !== undefined) return <em class="muted">{placeholder}</em>;
  return <pre>{typeof value === "string" ? value : JSON.stringify(value, undefined, 2)}</pre>;
}
