import { cases, git, succeeded } from "../testing/views.ts";

cases("a spec is invalid if it", [
  ["has no stack name", { spec: { stack: "" } }, "none: SpecInvalid"],
  ["has two revisions", { spec: { ...git, commit: "a".repeat(40) } }, "none: SpecInvalid"],
  [
    "refers to a Secret of another namespace",
    { spec: { envRefs: { A: { type: "Secret", secret: { name: "a", key: "b", namespace: "other" } } } } },
    "none: SpecInvalid",
  ],
  ["refers to the operator's environment", { spec: { envRefs: { A: { type: "Env" } } } }, "none: SpecInvalid"],
  ["refers to the operator's files", { spec: { envRefs: { A: { type: "FS" } } } }, "none: SpecInvalid"],
  ["has the Stack itself as a prerequisite", { spec: { prerequisites: [{ name: "web" }] } }, "none: SpecInvalid"],
  ["became invalid after a success", { spec: { stack: "" }, last: succeeded() }, "none: SpecInvalid"],
  ["has a dependency cycle", { cycle: ["web", "base", "web"] }, "none: SpecInvalid"],
  ["has a dependency cycle after a success", { cycle: ["web", "base", "web"], last: succeeded() }, "none: SpecInvalid"],
  [
    "refers to a Secret that does not exist, when an update is due",
    { missing: ["there is no Secret token"] },
    "none: SpecInvalid",
  ],
  [
    "refers to a Secret that does not exist, for a destroy",
    { deleting: true, spec: { destroyOnFinalize: true }, last: succeeded(), missing: ["there is no Secret token"] },
    "none: SpecInvalid",
  ],
]);
