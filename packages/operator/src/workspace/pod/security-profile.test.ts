import { describe, expect, test } from "bun:test";

import type { SecurityProfile } from "@pko/api";
import type { Container, PodSpec, PodTemplateSpec, SecurityContext, Volume } from "kubernetes-types/core/v1";

import { enforceProfile, fillProfile } from "./security-profile.ts";

const container = (securityContext: SecurityContext, part: Partial<Container> = {}): PodSpec => ({
  containers: [{ name: "pulumi", image: "i", securityContext, ...part }],
});
const plain = (part: Partial<PodSpec>): PodSpec => ({ ...container({}), ...part });
const violations = (spec: PodSpec, profile: SecurityProfile): string[] =>
  enforceProfile({ spec }, profile).violations.map((each) =>
    each.replace(`, which the security profile ${profile} forbids`, "").replace("spec.podTemplate.spec.", ""),
  );

const forbidden: Readonly<Record<string, { spec: PodSpec; baseline: string[]; restricted?: string[] }>> = {
  "a plain pod": { spec: plain({}), baseline: [] },
  "the host's network": { spec: plain({ hostNetwork: true }), baseline: ["hostNetwork is true"] },
  "the host's processes": { spec: plain({ hostPID: true }), baseline: ["hostPID is true"] },
  "the host's files": {
    spec: plain({ volumes: [{ name: "h", hostPath: { path: "/" } }] }),
    baseline: ["volumes[h] is a hostPath"],
  },
  "an NFS volume": {
    spec: plain({ volumes: [{ name: "n", nfs: { server: "s", path: "/" } }] }),
    baseline: [],
    restricted: ["volumes[n] has the type nfs"],
  },
  "a claim": { spec: plain({ volumes: [{ name: "c", persistentVolumeClaim: { claimName: "c" } }] }), baseline: [] },
  "a privileged container": {
    spec: container({ privileged: true }),
    baseline: ["containers[pulumi].securityContext.privileged is true"],
  },
  "a privileged init container": {
    spec: plain({ initContainers: [{ name: "i", securityContext: { privileged: true } }] }),
    baseline: ["initContainers[i].securityContext.privileged is true"],
  },
  "a powerful capability": {
    spec: container({ capabilities: { add: ["SYS_ADMIN"] } }),
    baseline: ["containers[pulumi].securityContext.capabilities adds SYS_ADMIN"],
  },
  "a harmless capability": {
    spec: container({ capabilities: { add: ["CHOWN"] } }),
    baseline: [],
    restricted: ["containers[pulumi].securityContext.capabilities adds CHOWN"],
  },
  "the capability of low ports": { spec: container({ capabilities: { add: ["NET_BIND_SERVICE"] } }), baseline: [] },
  "a port of the host": {
    spec: container({}, { ports: [{ containerPort: 1, hostPort: 2 }] }),
    baseline: ["containers[pulumi].ports uses the host port 2"],
  },
  "a probe of another host": {
    spec: container({}, { livenessProbe: { tcpSocket: { host: "10.0.0.1", port: 1 } } }),
    baseline: ["containers[pulumi] calls the host 10.0.0.1 in a probe or hook"],
  },
  "an image as a volume": {
    spec: plain({ volumes: [{ name: "i", image: { reference: "x" } } as Volume] }),
    baseline: [],
  },
  "no seccomp profile": {
    spec: container({ seccompProfile: { type: "Unconfined" } }),
    baseline: ["containers[pulumi].securityContext.seccompProfile is Unconfined"],
  },
  "no seccomp profile for the pod": {
    spec: plain({ securityContext: { seccompProfile: { type: "Unconfined" } } }),
    baseline: ["securityContext.seccompProfile is Unconfined"],
  },
  "a kernel setting": {
    spec: plain({ securityContext: { sysctls: [{ name: "kernel.msgmax", value: "1" }] } }),
    baseline: ["securityContext.sysctls sets kernel.msgmax"],
  },
  "an unmasked /proc": {
    spec: container({ procMount: "Unmasked" }),
    baseline: ["containers[pulumi].securityContext.procMount is not Default"],
  },
  root: {
    spec: container({ runAsUser: 0 }),
    baseline: [],
    restricted: ["containers[pulumi].securityContext.runAsUser is 0"],
  },
  "root for the pod": {
    spec: plain({ securityContext: { runAsUser: 0 } }),
    baseline: [],
    restricted: ["securityContext.runAsUser is 0"],
  },
  "possibly root": {
    spec: plain({ securityContext: { runAsNonRoot: false } }),
    baseline: [],
    restricted: ["securityContext.runAsNonRoot is false"],
  },
  "privilege escalation": {
    spec: container({ allowPrivilegeEscalation: true }),
    baseline: [],
    restricted: ["containers[pulumi].securityContext.allowPrivilegeEscalation is true"],
  },
};

const appArmor = (value: string): PodTemplateSpec => ({
  metadata: { annotations: { "container.apparmor.security.beta.kubernetes.io/pulumi": value } },
  spec: plain({}),
});

test.each([
  ["runtime/default", true],
  ["localhost/mine", true],
  ["", true],
  ["unconfined", false],
  ["anything", false],
])("AppArmor by annotation: %p is allowed: %p", (value, isAllowed) => {
  const field = "spec.podTemplate.metadata.annotations[container.apparmor.security.beta.kubernetes.io/pulumi]";
  for (const profile of ["baseline", "restricted"] as const) {
    const refused = [`${field} is ${value}, which the security profile ${profile} forbids`];
    expect(enforceProfile(appArmor(value), profile).violations).toEqual(isAllowed ? [] : refused);
    expect(fillProfile(appArmor(value), profile).violations).toEqual([]);
  }
});

test.each([
  ["RuntimeDefault", true],
  ["Localhost", true],
  ["Unconfined", false],
  ["Other", false],
])("AppArmor by field: %p is allowed: %p", (type, isAllowed) => {
  const profile = { appArmorProfile: { type } } as SecurityContext;
  const refused = (at: string): string[] => (isAllowed ? [] : [`${at}securityContext.appArmorProfile is ${type}`]);
  expect(violations(container(profile), "baseline")).toEqual(refused("containers[pulumi]."));
  expect(violations(plain({ securityContext: profile }), "baseline")).toEqual(refused(""));
});

describe("a violation", () => {
  for (const [name, { spec, baseline, restricted = baseline }] of Object.entries(forbidden)) {
    test(name, () => {
      expect(violations(spec, "baseline")).toEqual(baseline);
      expect(violations(spec, "restricted")).toEqual(restricted);
    });
  }
});

test("restricted fills in unset fields in every container, and keeps the others", () => {
  const spec: PodSpec = {
    securityContext: { runAsUser: 2000 },
    initContainers: [{ name: "i", securityContext: { capabilities: { drop: ["KILL"] } } }],
    containers: [{ name: "pulumi", securityContext: { readOnlyRootFilesystem: true } }, { name: "side" }],
  };
  const { template } = enforceProfile({ spec }, "restricted");
  expect(template.spec).toEqual({
    securityContext: { runAsNonRoot: true, runAsUser: 2000, seccompProfile: { type: "RuntimeDefault" } },
    initContainers: [
      { name: "i", securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL", "KILL"] } } },
    ],
    containers: [
      {
        name: "pulumi",
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        },
      },
      { name: "side", securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } } },
    ],
  });
});

test("baseline changes nothing", () => {
  const spec = container({ runAsUser: 0 });
  expect(enforceProfile({ spec }, "baseline").template.spec).toEqual(spec);
});

describe("an operator that does not enforce profiles", () => {
  test.each(Object.entries(forbidden))("refuses nothing: %s", (_, { spec }) => {
    expect(fillProfile({ spec }, "restricted").violations).toEqual([]);
    expect(fillProfile({ spec }, "baseline")).toEqual({ template: { spec }, violations: [] });
  });

  test("fills in unset fields like one that does", () => {
    const { spec } = { spec: plain({ initContainers: [{ name: "i" }], securityContext: { runAsUser: 2000 } }) };
    expect(fillProfile({ spec }, "restricted")).toEqual(enforceProfile({ spec }, "restricted"));
  });

  test("leaves root, privileged containers and those with capabilities unchanged", () => {
    const privileged: Container[] = [
      { name: "docker", securityContext: { privileged: true } },
      { name: "network", securityContext: { capabilities: { add: ["NET_ADMIN"] } } },
      { name: "owner", securityContext: { runAsUser: 0, runAsNonRoot: false } },
    ];
    const spec: PodSpec = { initContainers: privileged, containers: [{ name: "pulumi" }] };
    const { template } = fillProfile({ spec }, "restricted");
    expect(template.spec?.initContainers).toEqual(privileged);
    expect(template.spec?.containers).toEqual(enforceProfile({ spec }, "restricted").template.spec?.containers ?? []);
  });

  test("allows root if only its user ID is set", () => {
    const spec: PodSpec = {
      securityContext: { runAsNonRoot: true, runAsUser: 0 },
      initContainers: [{ name: "user", securityContext: { runAsUser: 1000 } }],
      containers: [{ name: "pulumi" }],
    };
    const { template } = fillProfile({ spec }, "restricted");
    expect(template.spec?.containers).toEqual([{ name: "pulumi", securityContext: { runAsNonRoot: false } }]);
    expect(template.spec?.initContainers?.[0]?.securityContext).toMatchObject({ allowPrivilegeEscalation: false });
  });
});
