import { unavailable } from "../../sources/source-view.ts";
import { cases, failed, succeeded } from "../testing/views.ts";

cases("the Stack is stalled, or waits, if its source", [
  ["does not exist", { source: unavailable("notFound", "there is no Program program") }, "none: SourceUnavailable"],
  ["rejects the credentials", { source: unavailable("auth", "no") }, "none: SourceUnavailable"],
  ["has no such branch", { source: unavailable("branchMissing", "no") }, "none: SourceUnavailable"],
  ["cannot be reached", { source: unavailable("unreachable", "no") }, "none: SourceUnavailable"],
  ["is not allowed", { source: unavailable("refused", "no") }, "none: SourceUnavailable"],
  ["is a Flux object that is not ready", { source: unavailable("notReady", "no") }, "none: SourceUnavailable"],
  [
    "no longer exists after a success",
    { source: unavailable("notFound", "no"), last: succeeded() },
    "none: SourceUnavailable",
  ],
  [
    "no longer exists after a failure",
    { source: unavailable("notFound", "no"), last: failed() },
    "none: SourceUnavailable",
  ],
  [
    "has not been read yet, for a new Stack",
    { source: { kind: "pending", what: "the first check" } },
    "none: StackProcessing",
  ],
  [
    "has not been read yet, for a changed Stack",
    {
      source: { kind: "pending", what: "the first check" },
      last: succeeded(),
      status: { observedGeneration: 1 },
      generation: 2,
    },
    "none: StackProcessing",
  ],
]);
