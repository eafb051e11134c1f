import { describe, expect, test } from "bun:test";

import { normalizeWorkspace, type WorkspaceClassSpec, type WorkspaceSpec } from "@pko/api";
import type { Container, PodSpec, ResourceRequirements } from "kubernetes-types/core/v1";

import type { AppliedClass } from "../../shared/workspace-classes.ts";
import { buildPodTemplate } from "../pod/build-pod.ts";
import { settings } from "../testing/views.ts";
import { cacheClaim } from "./caches.ts";

type Rules = Omit<WorkspaceClassSpec, "namespaceSelector">;

const classOf = (rules: Rules): AppliedClass => ({
  name: "teams",
  uid: "c1",
  spec: { namespaceSelector: {}, ...rules },
});

function built(spec: WorkspaceSpec, rules: Rules) {
  const normal = normalizeWorkspace({ metadata: { name: "web", namespace: "team" }, spec });
  if (!normal.ok) throw new Error("invalid");
  return buildPodTemplate(normal.value, { settings, applied: classOf(rules) });
}

function podOf(spec: WorkspaceSpec, rules: Rules): PodSpec {
  const pod = built(spec, rules);
  if (!pod.ok || !pod.template.spec) throw new Error(JSON.stringify(pod));
  return pod.template.spec;
}

const pulumiOf = ({ containers }: PodSpec): Container => {
  const found = containers.find(({ name }) => name === "pulumi");
  if (!found) throw new Error("no container");
  return found;
};

const withContainers = (...containers: Partial<Container>[]): WorkspaceSpec =>
  ({ podTemplate: { spec: { containers } } }) as WorkspaceSpec;
/** Of Kubernetes 1.34. */
const ofPod = (resources: Container["resources"]): WorkspaceSpec =>
  ({ podTemplate: { spec: { resources } } }) as WorkspaceSpec;
const limited = (memory: string) => ({ resources: { limits: { memory } } });
const withInit = (...initContainers: Partial<Container>[]): WorkspaceSpec =>
  ({ podTemplate: { spec: { initContainers } } }) as WorkspaceSpec;
const sidecar = (memory: string): Partial<Container> => ({
  name: "side",
  image: "t",
  restartPolicy: "Always",
  ...limited(memory),
});
/** A merge would drop null. */
const nullLimit = { $patch: "replace", limits: { memory: null } } as unknown as ResourceRequirements;
const ofCpu = (cpu: string) => ({ resources: { limits: { cpu } } });

describe("a container whose limit is filled in requests less than that", () => {
  const rules = { limits: { resources: { cpu: "50m", memory: "4Gi", "ephemeral-storage": "20Gi" } } } as const;
  const spec = podOf({ ...withInit({ name: "tool", image: "t" }), resources: { requests: { cpu: "10m" } } }, rules);
  const all = [...(spec.initContainers ?? []), ...spec.containers];
  const requests: [string, Record<string, string>][] = [
    ["bootstrap", { cpu: "10m", memory: "64Mi", "ephemeral-storage": "256Mi" }],
    ["tool", { cpu: "50m", memory: "64Mi", "ephemeral-storage": "256Mi" }],
    ["pulumi", { cpu: "10m", memory: "64Mi", "ephemeral-storage": "256Mi" }],
  ];
  test.each(requests)("%s", (name, expected) => {
    const { resources } = all.find((each) => each.name === name) ?? {};
    expect(resources?.requests).toEqual(expected);
    expect(resources?.limits).toEqual(rules.limits.resources);
  });
});

describe("the container pulumi gets as its limit", () => {
  const fourGi = { limits: { resources: { memory: "4Gi" } } };
  const table: [string, WorkspaceSpec, Rules, string | undefined][] = [
    ["nothing without a limit of the class", {}, {}, undefined],
    ["the limit of the class if it has none", {}, fourGi, "4Gi"],
    ["its own if that is lower", limited("1Gi"), fourGi, "1Gi"],
    ["its own if that is equal, in another unit", limited("4096Mi"), fourGi, "4096Mi"],
    ["that of the pod if that is lower", ofPod({ limits: { memory: "1Gi" } }), fourGi, "1Gi"],
    ["what a sidecar leaves", withContainers({ name: "proxy", image: "p", ...limited("512Mi") }), fourGi, "3584Mi"],
    ["the limit of the class if its own is 0, which is no limit", limited("0"), fourGi, "4Gi"],
    ["the limit of the class if that of the pod is 0", ofPod({ limits: { memory: "0" } }), fourGi, "4Gi"],
    [
      "the limit of the class if its own is null",
      withContainers({ name: "pulumi", resources: nullLimit }),
      fourGi,
      "4Gi",
    ],
    [
      "its own with spaces around it, which Kubernetes ignores",
      withContainers({ name: "pulumi", ...limited(" 1Gi ") }),
      fourGi,
      " 1Gi ",
    ],
    [
      "all that is left, also if that is a fraction of a unit",
      withContainers(
        { name: "pulumi", resources: { requests: { memory: "500M" } } },
        { name: "p", ...limited("500M") },
      ),
      { limits: { resources: { memory: "1000M" } } },
      "500000000",
    ],
  ];
  for (const [what, spec, rules, limit] of table) {
    test(what, () => expect(pulumiOf(podOf(spec, rules)).resources?.limits?.["memory"]).toBe(limit as string));
  }

  const cores: [string, number | string, string, WorkspaceSpec][] = [
    ["250m", 2, "1750m", {}],
    ["900m", "1", "100m", {}],
    ["0.07", "0.17", "100m", {}],
    ["100m", "300m", "200m", ofCpu("200m")],
    ["0.1", "300m", "0.2", ofCpu("0.2")],
    // Kubernetes has no smaller unit.
    ["100100u", "300m", "199m", {}],
  ];
  for (const [used, cpu, limit, spec] of cores) {
    test(`exactly what a sidecar with ${used} of ${cpu} cores leaves: ${limit}`, () => {
      const proxy = withContainers({ name: "proxy", image: "p", ...ofCpu(used) });
      const { resources } = pulumiOf(podOf({ ...proxy, ...spec }, { limits: { resources: { cpu } } }));
      expect(resources?.limits?.["cpu"]).toBe(limit);
    });
  }

  test("less disk than the operator's default", () => {
    const pod = podOf({}, { limits: { resources: { "ephemeral-storage": "2Gi" } } });
    expect(pulumiOf(pod).resources?.limits?.["ephemeral-storage"]).toBe("2Gi");
    expect(pod.volumes?.find(({ name }) => name === "share")?.emptyDir?.sizeLimit).toBe("2Gi");
  });
});

test("every container has a limit, also those that only initialize the pod", () => {
  const spec = { podTemplate: { spec: { initContainers: [{ name: "tool", image: "t" }] } } } as WorkspaceSpec;
  const pod = podOf(spec, { limits: { resources: { memory: "4Gi" } } });
  const all = [...(pod.initContainers ?? []), ...pod.containers];
  expect(all.map(({ resources }) => resources?.limits?.["memory"])).toEqual(all.map(() => "4Gi"));
});

test("an init container whose resources are null gets the limit of the class", () => {
  const init = [
    { $patch: "replace" },
    { name: "bootstrap", image: "b" },
    { name: "tool", image: "t", resources: null },
  ];
  const pod = podOf(withInit(...(init as unknown as Container[])), { limits: { resources: { memory: "1Gi" } } });
  expect(pod.initContainers?.find(({ name }) => name === "tool")?.resources?.limits).toEqual({ memory: "1Gi" });
});

test("an init container gets what the sidecars before it leave, and those after it do not count", () => {
  const spec = withInit(
    { name: "first", image: "t" },
    sidecar("1Gi"),
    { name: "second", image: "t", ...limited("0") },
    { ...sidecar("512Mi"), name: "late" },
  );
  const pod = podOf(spec, { limits: { resources: { memory: "4Gi" } } });
  const all = [...(pod.initContainers ?? []), ...pod.containers];
  expect(all.map(({ name, resources }) => [name, resources?.limits?.["memory"]])).toEqual([
    ["bootstrap", "4Gi"],
    ["first", "4Gi"],
    ["side", "1Gi"],
    ["second", "3072Mi"],
    ["late", "512Mi"],
    ["pulumi", "2560Mi"],
  ]);
});

describe("a pod exceeds the limits of its class", () => {
  const oneGi = { limits: { resources: { memory: "1Gi" } } };
  const table: [string, WorkspaceSpec, string][] = [
    ["with a limit", limited("2Gi"), "2048Mi in total, and the WorkspaceClass teams allows 1Gi"],
    [
      "with a limit with a space before it, which Kubernetes ignores",
      withContainers({ name: "pulumi", ...limited(" 2Gi") }),
      "2048Mi in total",
    ],
    [
      "with a limit that is no quantity",
      withContainers({ name: "pulumi", ...limited("2 Gi") }),
      "an unknown amount in total",
    ],
    ["with a limit of the pod with a space after it", ofPod({ limits: { memory: "64Gi " } }), "memory of 65536Mi"],
    [
      "with a sidecar whose limit is null",
      withContainers({ name: "p", image: "p", resources: nullLimit }),
      "container p has no limit",
    ],
    ["with a request alone", { resources: { requests: { memory: "2Gi" } } }, "2048Mi in total"],
    [
      "with its containers together",
      withContainers({ name: "pulumi", ...limited("768Mi") }, { name: "proxy", image: "p", ...limited("512Mi") }),
      "1280Mi in total",
    ],
    ["with a limit of the pod", ofPod({ limits: { memory: "2Gi" } }), "has a limit or request for memory of 2048Mi"],
    [
      "with a request of the pod",
      ofPod({ requests: { memory: "2Gi" } }),
      "has a limit or request for memory of 2048Mi",
    ],
    ["with a sidecar that leaves nothing", withContainers({ name: "p", image: "p", ...limited("1Gi") }), "in total"],
    ["with a sidecar without a limit", withContainers({ name: "proxy", image: "p" }), "container proxy has no limit"],
    [
      "with a sidecar that has the limit 0, which is no limit",
      withContainers({ name: "proxy", image: "p", ...limited("0") }),
      "container proxy has no limit",
    ],
    [
      "with a sidecar among the init containers that has the limit 0",
      withInit(sidecar("0")),
      "container side has no limit",
    ],
    [
      "with an init container",
      withInit({ name: "tool", image: "t", ...limited("2Gi") }),
      "init container tool has a limit or request for memory of 2048Mi",
    ],
    [
      "with a request of an init container, which its limit cannot be below",
      withInit({ name: "tool", image: "t", resources: { requests: { memory: "2Gi" } } }),
      "init container tool has a limit or request for memory of 2048Mi",
    ],
    [
      "with an init container and the sidecars before it",
      withInit(sidecar("256Mi"), { name: "tool", image: "t", ...limited("1Gi") }),
      "init container tool has a limit or request for memory of 1280Mi together with the sidecars before it",
    ],
    [
      "with an init container that keeps running",
      {
        podTemplate: {
          spec: { initContainers: [{ name: "s", image: "t", restartPolicy: "Always", ...limited("1Gi") }] },
        },
      },
      "in total",
    ],
    [
      "with a bootstrap container that keeps running",
      { podTemplate: { spec: { initContainers: [{ name: "bootstrap", restartPolicy: "Always" }] } } },
      "container bootstrap has no limit",
    ],
  ];
  for (const [what, spec, message] of table) {
    test(what, () => {
      const pod = built(spec, oneGi);
      expect(pod).toMatchObject({ ok: false, reason: "WorkspaceClassLimitExceeded" });
      expect(pod.ok ? "" : pod.problems.join()).toContain(message);
    });
  }
});

describe("caches", () => {
  const caches = { size: "10Gi" };

  test("are mounted, and the tools use them", () => {
    const pod = podOf({}, { caches });
    const pulumi = pulumiOf(pod);
    expect(pod.volumes).toContainEqual({
      name: "pulumi-cache",
      persistentVolumeClaim: { claimName: "pulumi-cache-teams" },
    });
    expect(pulumi.volumeMounts).toContainEqual({ name: "pulumi-cache", mountPath: "/var/cache/pulumi" });
    expect(pulumi.command).toContain("--caches=/var/cache/pulumi/restricted");
    expect(pulumi.command).toContain("--plugin-cache=/var/cache/pulumi/restricted/plugins");
    const values = Object.fromEntries((pulumi.env ?? []).map(({ name, value }) => [name, value]));
    expect(values).toMatchObject({
      npm_config_cache: "/var/cache/pulumi/restricted/npm",
      PIP_CACHE_DIR: "/var/cache/pulumi/restricted/pip",
      GOMODCACHE: "/var/cache/pulumi/restricted/go-mod",
      GOCACHE: "/var/cache/pulumi/restricted/go-build",
    });
  });

  test("are only those of the named tools", () => {
    const pulumi = pulumiOf(podOf({}, { caches: { ...caches, tools: ["Npm"] } }));
    expect(pulumi.command?.join(" ")).not.toContain("--plugin-cache");
    const names = (pulumi.env ?? []).map(({ name }) => name);
    expect(names).toContain("npm_config_cache");
    expect(names).not.toContain("PIP_CACHE_DIR");
  });

  test("are apart for users of different profiles, who cannot write to each other's files", () => {
    const pulumi = pulumiOf(podOf({ securityProfile: "baseline" }, { caches }));
    expect(pulumi.command).toContain("--plugin-cache=/var/cache/pulumi/baseline/plugins");
  });

  test("are not used where the Stack sets another folder", () => {
    const env = [{ name: "PIP_CACHE_DIR", value: "/mine" }];
    expect(pulumiOf(podOf({ env }, { caches })).env?.filter(({ name }) => name === "PIP_CACHE_DIR")).toEqual(env);
  });

  test("are on a claim that belongs to the class", () => {
    expect(cacheClaim(classOf({ caches: { ...caches, storageClassName: "fast" } }), "team")).toMatchObject({
      metadata: {
        name: "pulumi-cache-teams",
        namespace: "team",
        ownerReferences: [{ kind: "WorkspaceClass", name: "teams", uid: "c1", controller: true }],
      },
      spec: {
        accessModes: ["ReadWriteOnce"],
        storageClassName: "fast",
        resources: { requests: { storage: "10Gi" } },
      },
    });
    expect(cacheClaim(classOf({}), "team")).toBeUndefined();
  });
});

describe("policy packs", () => {
  const policyPacks = [
    { name: "cost", image: "packs:1", path: "/cost" },
    { name: "tags", path: "/opt/tags" },
  ];

  test("are passed to the agent, and copied from their images", () => {
    const pod = podOf({}, { policyPacks });
    expect(pulumiOf(pod).command?.filter((flag) => flag.startsWith("--policy-pack"))).toEqual([
      "--policy-pack=/pulumi-policy-packs/cost",
      "--policy-pack=/opt/tags",
    ]);
    expect(pod.initContainers?.at(-1)).toMatchObject({
      name: "policy-pack-cost",
      image: "packs:1",
      command: ["cp", "-R", "/cost/.", "/pulumi-policy-packs/cost"],
    });
    expect(pulumiOf(pod).volumeMounts).toContainEqual({
      name: "pulumi-policy-packs",
      mountPath: "/pulumi-policy-packs",
      readOnly: true,
    });
  });

  test("cannot be replaced by a template", () => {
    const spec = {
      podTemplate: {
        spec: {
          volumes: [{ name: "pulumi-policy-packs", configMap: { name: "mine" } }],
          initContainers: [{ name: "policy-pack-cost", image: "mine", command: ["true"] }],
          containers: [{ name: "pulumi", volumeMounts: [{ name: "mine", mountPath: "/pulumi-policy-packs/cost" }] }],
        },
      },
    } as unknown as WorkspaceSpec;
    const pod = podOf(spec, { policyPacks });
    expect(JSON.stringify(pod)).not.toContain("mine");
  });

  test("cannot be covered by another mount, however its path is written", () => {
    const mount = (mountPath: string) => ({ name: "mine", mountPath });
    const paths = [
      "//pulumi-policy-packs/cost",
      "/tmp/../pulumi-policy-packs/",
      "pulumi-policy-packs/cost",
      "../pulumi-policy-packs",
      "/pulumi-policy-packs-of-mine",
    ];
    const pod = podOf(withContainers({ name: "pulumi", volumeMounts: paths.map(mount) }), { policyPacks });
    const mine = pulumiOf(pod).volumeMounts?.filter(({ name }) => name === "mine");
    expect(mine).toEqual([mount("/pulumi-policy-packs-of-mine")]);
  });

  test("cannot be changed by a container or an init container of a template", () => {
    const volumeMounts = [{ name: "pulumi-policy-packs", mountPath: "/packs" }];
    const others = {
      containers: [{ name: "proxy", image: "p", volumeMounts }],
      initContainers: [{ name: "tool", image: "t", restartPolicy: "Always", volumeMounts }],
    };
    const pod = podOf({ podTemplate: { spec: others } }, { policyPacks });
    const all = [...(pod.initContainers ?? []), ...pod.containers];
    const mounting = all.filter((each) => each.volumeMounts?.some(({ name }) => name === "pulumi-policy-packs"));
    expect(mounting.map(({ name }) => name)).toEqual(["policy-pack-cost", "pulumi"]);
  });
});
