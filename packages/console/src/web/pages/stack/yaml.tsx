/** The Stack as the API server has it, without managedFields, the last applied configuration, and secrets in plain text. */
import { perform } from "../../components/dialog.tsx";
import { toYaml } from "../../lib/to-yaml.ts";
import type { StackView } from "./index.tsx";

export function YamlTab({ stack }: StackView) {
  const { apiVersion, kind, metadata, ...rest } = stack;
  // As kubectl orders them.
  const text = toYaml({ apiVersion, kind, metadata, ...rest });
  return (
    <>
      <p class="toolbar">
        <button
          type="button"
          onClick={() => void perform(async () => await navigator.clipboard.writeText(text), "Copied.")}
        >
          Copy
        </button>
      </p>
      <pre class="code-block" tabIndex={0} role="region" aria-label="YAML">
        {text}
      </pre>
    </>
  );
}
