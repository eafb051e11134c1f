/** A Program as a source: its generation is the revision. */
import { missingSource, type Program } from "@pko/api";

import { unavailable, type SourceView } from "./source-view.ts";

export function programView(program: Program | undefined, name: string): SourceView {
  if (!program || program.metadata.deletionTimestamp) return unavailable("notFound", missingSource(`Program ${name}`));
  const generation = program.metadata.generation ?? 0;
  const { artifact } = program.status ?? {};
  // The Go operator builds archives of Programs and uses their digests as revisions.
  const aliases = artifact?.digest && artifact.revision === String(generation) ? [artifact.digest] : [];
  return { kind: "ready", revision: String(generation), aliases, spec: { program: { name, generation } } };
}
