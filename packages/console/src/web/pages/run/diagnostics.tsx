/** What Pulumi, its providers and its policies reported: errors first. */
import { urnName, urnType } from "@pko/records/browser";

import { Empty } from "../../components/common.tsx";
import { Badge, type IconName, type Tone } from "../../components/icon.tsx";
import type { Diagnostic } from "../../lib/run.ts";
import { withoutEscapes } from "../../lib/search-log.ts";
import type { RunView } from "./index.tsx";

const looks: Readonly<Record<Diagnostic["severity"], { icon: IconName; tone: Tone; text: string }>> = {
  error: { icon: "cross", tone: "bad", text: "error" },
  policy: { icon: "triangle", tone: "warning", text: "policy" },
  warning: { icon: "triangle", tone: "warning", text: "warning" },
  info: { icon: "question", tone: "info", text: "info" },
  debug: { icon: "question", tone: "muted", text: "debug" },
};

export function DiagnosticsTab({ model, isRunning }: RunView) {
  const all = [...model.diagnostics, ...model.notices];
  if (all.length === 0) return <Empty title={isRunning ? "Nothing has been reported yet." : "Nothing was reported."} />;
  return (
    <ul class="diagnostics" aria-label="Diagnostics">
      {all.map((diagnostic, at) => (
        <li key={at}>
          <p>
            <Badge {...looks[diagnostic.severity]} />
            {diagnostic.urn === undefined || diagnostic.urn === "" ? null : (
              <span title={diagnostic.urn}>
                <strong>{urnName(diagnostic.urn)}</strong> <span class="muted">{urnType(diagnostic.urn)}</span>
              </span>
            )}
          </p>
          <pre class="message-text">{withoutEscapes(diagnostic.message).trim()}</pre>
        </li>
      ))}
    </ul>
  );
}
