/**
 * Validation that rules in the Stack's schema cannot do, because it needs the object's namespace, or a field with two types.
 * The API server evaluates the policy. If the policy fails, it admits the Stack, because the normalizer repeats the checks.
 */
import {
  durationPattern,
  durationMessage,
  validationText,
  stackDefinition,
  stackMessages as messages,
  type ValidationMessage,
} from "@pko/api";

import { stackRequests, type AdmissionPolicy, type Validation } from "./policy.ts";

const { group, plural } = stackDefinition;

const referenceMaps = ["envRefs", "secretsRef"];

/** The entries of a map of references that refer to another namespace. */
function foreignEntries(map: string): { name: string; expression: string } {
  const namespace = `object.spec.${map}[key].?secret.?namespace.orValue("")`;
  const foreign = `object.spec.${map}.filter(key, ${namespace} != "" && ${namespace} != object.metadata.namespace)`;
  return { name: map, expression: `has(object.spec.${map}) ? ${foreign} : []` };
}

function noForeignEntries(map: string): Validation {
  const remedy = `.secret.namespace: ${validationText(messages.otherNamespace)}`;
  return {
    expression: `variables.${map}.size() == 0`,
    messageExpression: `"spec.${map}." + variables.${map}[0] + "${remedy}"`,
  };
}

const credentials = [
  "accessToken",
  "sshAuth.sshPrivateKey",
  "sshAuth.password",
  "basicAuth.userName",
  "basicAuth.password",
  "githubApp.appID",
  "githubApp.installationID",
  "githubApp.privateKey",
];

function ownNamespace(credential: string): Validation {
  const path = `gitAuth.${credential}.secret.namespace`;
  const steps = path.split(".").map((step) => `.?${step}`);
  const namespace = `object.spec${steps.join("")}.orValue("")`;
  return {
    expression: `${namespace} == "" || ${namespace} == object.metadata.namespace`,
    message: `spec.${path}: ${validationText(messages.otherNamespace)}`,
  };
}

/** `condition` must hold for every prerequisite `p`. */
function everyPrerequisite(condition: string, message: ValidationMessage): Validation {
  return {
    expression: `!has(object.spec.prerequisites) || object.spec.prerequisites.all(p, ${condition})`,
    message: `spec.prerequisites: ${validationText(message)}`,
  };
}

const byName = `p.?name.orValue("") != ""`;
const byRequirement = `has(p.requirement) && type(p.requirement) == string && p.requirement != ""`;
const hasDuration = "has(p.requirement) && type(p.requirement) == map && has(p.requirement.succeededWithinDuration)";

const prerequisites: readonly Validation[] = [
  everyPrerequisite(`(${byName}) || (${byRequirement})`, messages.prerequisiteWithoutName),
  everyPrerequisite(`!(${byName} && ${byRequirement})`, messages.prerequisiteTwoNames),
  everyPrerequisite(`!(${hasDuration}) || p.requirement.succeededWithinDuration.matches(r"${durationPattern}")`, {
    ...durationMessage,
    message: `requirement.succeededWithinDuration ${durationMessage.message}`,
  }),
];

export const stackValidationPolicy: AdmissionPolicy = {
  name: `${plural}.${group}`,
  suffix: "",
  spec: {
    failurePolicy: "Ignore",
    matchConstraints: stackRequests("CREATE", "UPDATE"),
    // Existing objects must stay editable, so that their finalizer can be removed.
    matchConditions: [
      { name: "spec-is-new", expression: "has(object.spec) && (oldObject == null || object.spec != oldObject.spec)" },
    ],
    variables: referenceMaps.map(foreignEntries),
    validations: [...referenceMaps.map(noForeignEntries), ...credentials.map(ownNamespace), ...prerequisites],
  },
};
