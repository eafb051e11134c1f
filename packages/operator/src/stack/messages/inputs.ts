/** The spec, its inputs and its source. */
import { invalidJson, missingKey, missingObject } from "@pko/api";

export { dependencyCycle } from "@pko/api";

export const missingInputs = (problems: readonly string[]): string =>
  `${problems.join("; ")}; this is checked again automatically`;

export interface InputReference {
  readonly kind: "secret" | "configMap";
  readonly name: string;
  readonly key?: string;
  /** The field that refers to it. */
  readonly user: string;
}

const inputObject = ({ kind, name }: InputReference): string => `${kind === "secret" ? "Secret" : "ConfigMap"} ${name}`;

export const inputMissing = (reference: InputReference): string =>
  missingObject(inputObject(reference), reference.user);

export const inputKeyMissing = (reference: InputReference): string =>
  missingKey(inputObject(reference), { key: reference.key ?? "", user: reference.user });

export const inputNotJson = (reference: InputReference): string =>
  invalidJson(inputObject(reference), { key: reference.key ?? "", user: reference.user });

export const validSpec = "a valid spec";
export const waitingForSource = (what: string): string => `Waiting for ${what}.`;
export const waitingForDestroySource = (what: string): string => `The destroy waits for ${what}.`;
export const firstCheck = (repository: string): string => `the first check of the repository ${repository}`;
export const comparing = (commit: string): string => `the comparison of commit ${commit} with the last successful one`;
export const repositoryFailed = (repository: string, message: string): string =>
  `the repository ${repository}: ${message}`;

export const destroyNeedsProgram = (problem: string): string =>
  `${problem}; the destroy needs the program, because the name and runtime of the project are not known or runProgram is set`;
