/** The output of Pulumi, with a search. */
import { useMemo, useRef } from "preact/hooks";

import { Empty, Notice } from "../../components/common.tsx";
import { query, replaceQuery } from "../../data/location.ts";
import { useShortcut } from "../../data/shortcuts.ts";
import { searchLog, splitMatches } from "../../lib/search-log.ts";
import type { RunView } from "./index.tsx";

/** More lines would make the page slow; the search finds the others. */
const maxLines = 5000;

export function LogTab({ lines, update, isRunning }: RunView) {
  const search = query.value.get("search") ?? "";
  const field = useRef<HTMLInputElement>(null);
  useShortcut("/", () => field.current?.focus());
  const matches = useMemo(() => searchLog(lines, search), [lines, search]);
  if (lines.length === 0) {
    return (
      <Empty title={isRunning ? "Pulumi has printed nothing yet." : "The log is no longer available."}>
        {isRunning ? null : <p>It is part of the pod and of the Update, which are deleted some time after the run.</p>}
      </Empty>
    );
  }
  const setSearch = (text: string): void => replaceQuery(text === "" ? "" : `?search=${encodeURIComponent(text)}`);
  return (
    <>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">
          <span>Search in the log</span>
          <input
            ref={field}
            type="search"
            value={search}
            onInput={({ currentTarget }) => setSearch(currentTarget.value)}
          />
        </label>
        <p class="muted" role="status">
          {search === "" ? `${lines.length} lines` : `${matches.length} of ${lines.length} lines`}
        </p>
      </form>
      {update?.status?.stdout?.truncated ? (
        <Notice tone="warning" title="The middle of the output is missing.">
          <p>The whole output is in the Secret {update.status.stdout.secretName ?? "of the Update"}.</p>
        </Notice>
      ) : null}
      <ol class="log" tabIndex={0} aria-label="Log">
        {matches.slice(-maxLines).map(({ line, text }) => (
          <li key={line} value={line}>
            {splitMatches(text, search).map((piece, at) =>
              piece.isMatch ? <mark key={at}>{piece.text}</mark> : piece.text,
            )}
          </li>
        ))}
      </ol>
    </>
  );
}
