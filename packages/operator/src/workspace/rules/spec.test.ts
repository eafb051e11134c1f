import { describe } from "bun:test";

import { checkPlans } from "../testing/cases.ts";
import {
  deleted,
  given,
  input,
  notReady,
  pod,
  ready,
  set,
  specified,
  update,
  withoutAddress,
} from "../testing/views.ts";

const noSource = input({ requested: { kind: "incomplete", message: "there is no Program web", soon: true } });
const app = { appId: "1", installationId: "2", privateKey: "PEM", repository: "https://example.com/r" };
const needsAppToken = input({ requested: { kind: "needsAppToken", app } });

describe("a deleted workspace", () => {
  checkPlans({
    "is only forgotten": { when: [deleted, pod(), set()], steps: ["forgetPreparation"], outcome: "deleting" },
    "is only forgotten while an Update runs, which handles its own end": {
      when: [deleted, pod(), set(), update("onPod")],
      steps: ["forgetPreparation"],
      outcome: "deleting",
    },
    "is deleted although its spec is invalid": {
      when: [specified({ git: {} }), deleted],
      steps: ["forgetPreparation"],
      outcome: "deleting",
    },
  });
});

describe("an invalid spec is reported", () => {
  checkPlans({
    "with the field if there are two sources": {
      when: [specified({ local: { dir: "/a" }, flux: { url: "http://h/a", digest: "sha256:a" } })],
      outcome: "misconfigured",
      contains: "spec: the program has more than one source",
    },
    "if the security profile is unknown": {
      when: [specified({ securityProfile: "none" })],
      outcome: "misconfigured",
      contains: "spec.securityProfile",
    },
    "without touching a pod that is up": {
      when: [specified({ securityProfile: "none" }), pod(), set()],
      outcome: "misconfigured",
    },
    "if a template uses the host's network": {
      when: [
        specified({ podTemplate: { spec: { hostNetwork: true } }, stacks: [{ name: "a" }], local: { dir: "/a" } }),
      ],
      outcome: "misconfigured",
      contains: "spec.podTemplate.spec.hostNetwork is true",
    },
    "and checked less often, the longer a template is invalid": {
      when: [
        specified({ podTemplate: { spec: { hostNetwork: true } }, stacks: [{ name: "a" }], local: { dir: "/a" } }),
        notReady(3600),
      ],
      outcome: "misconfigured",
      requeueAfterMs: 600_000,
    },
    "if a template removes the Pulumi container": {
      when: [
        specified({
          podTemplate: { spec: { containers: [{ name: "pulumi", $patch: "delete" }] } },
          stacks: [{ name: "a" }],
          local: { dir: "/a" },
        }),
      ],
      outcome: "misconfigured",
      contains: "the container pulumi is removed",
    },
    "if an element of a template has no name": {
      when: [specified({ podTemplate: { spec: { containers: [{ image: "x" }] } } })],
      outcome: "misconfigured",
      contains: "spec.podTemplate.spec.containers: every element must have the field name",
    },
    "if the Service template cannot be merged": {
      when: [specified({ serviceTemplate: { spec: { ports: [{ name: "x" }] } } })],
      outcome: "misconfigured",
      contains: "spec.serviceTemplate.spec.ports: every element must have the field port",
    },
    "with its own reason if the WorkspaceClass does not allow it": {
      when: [input({ pod: { ok: false, problems: ["too much memory"], reason: "WorkspaceClassLimitExceeded" } })],
      outcome: "misconfigured",
      contains: "too much memory",
      reason: "WorkspaceClassLimitExceeded",
    },
    "with the API server's reason if that rejects the objects": {
      when: [set(), pod(), given({ rejection: "the reason" })],
      outcome: "misconfigured",
      contains: "the reason",
      requeueAfterMs: 60_000,
    },
  });
});

describe("a missing source", () => {
  checkPlans({
    "is reported and checked again soon if the Program may appear": {
      when: [noSource],
      outcome: "misconfigured",
      contains: "there is no Program web",
      requeueAfterMs: 5000,
    },
    "does not matter once the workspace is prepared": {
      when: [noSource, ready(), pod(), set()],
      outcome: "unchanged",
    },
    "does not matter for an Update if it is known what the pod has prepared": {
      when: [noSource, ready(), pod(), set(), update("waiting"), given({ isKnownPrepared: true })],
      outcome: "unchanged",
    },
    "is reported if an Update waits, and what the pod has prepared is unknown, for example after a restart": {
      when: [noSource, ready(), pod(), set(), update("waiting")],
      outcome: "misconfigured",
      contains: "there is no Program web",
    },
    "is reported in a pod that was not prepared": {
      when: [noSource, notReady(), pod(), set()],
      outcome: "misconfigured",
    },
    "does not keep an idle workspace from being scaled to zero": {
      when: [noSource, ready(700), withoutAddress, pod(), set()],
      steps: ["scaleToZero", "forgetPreparation"],
      outcome: "idle",
    },
  });
});

describe("a token of a GitHub App", () => {
  checkPlans({
    "is requested before anything is created": {
      when: [needsAppToken, given({ certificate: "missing" })],
      steps: ["requestAppToken"],
      outcome: "unchanged",
    },
    "is requested when a prepared workspace is checked": {
      when: [needsAppToken, ready(), pod(), set()],
      steps: ["requestAppToken"],
      outcome: "unchanged",
    },
  });
});

const missingSecret = input({
  missing: ["there is no Secret a, which the variable A of the container pulumi needs"],
});

describe("a Secret that the pod reads and that does not exist", () => {
  checkPlans({
    "prevents the creation of a pod that could not start": {
      when: [missingSecret],
      outcome: "waiting",
      contains: "there is no Secret a",
      requeueAfterMs: 5000,
    },
    "is named, and the others are counted": {
      when: [input({ missing: ["one", "two"] })],
      outcome: "waiting",
      contains: "one (and 1 more)",
    },
    "does not replace a pod that has read it": {
      when: [missingSecret, ready(), pod(), set({ builtHash: "with the Secret" })],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "is reported while the pod waits for it": {
      when: [missingSecret, notReady(), pod({ isUp: false }), set()],
      outcome: "waiting",
      contains: "there is no Secret a",
    },
  });
});
