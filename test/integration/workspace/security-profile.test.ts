import { expect, test } from "bun:test";

import { normalizeWorkspace, securityProfiles, type NormalWorkspace } from "@pko/api";
import { ApiError, builtin } from "@pko/kube";
import { seededRandom, testNamespace, testSeed, type TestNamespace } from "@pko/testkit";
import type { PodTemplateSpec } from "kubernetes-types/core/v1";

import { kubernetesVersion } from "../../../hack/cluster/src/kubernetes.ts";
import { buildPodTemplate } from "../../../packages/operator/src/workspace/pod/build-pod.ts";
import { podFor } from "../../../packages/operator/src/workspace/perform/pod.ts";
import { enforceProfile } from "../../../packages/operator/src/workspace/pod/security-profile.ts";
import { podTemplateSchema, strategicMerge } from "../../../packages/operator/src/shared/objects/strategic-merge.ts";
import type { JsonMap } from "../../../packages/operator/src/shared/objects/strategic-merge.ts";

const testTimeoutMs = 180_000;
/** Before Kubernetes 1.34, Pod Security allows what the operator rejects in any version: probes and hooks that call other hosts. */
const checksHosts = Number(kubernetesVersion(process.env["KUBE"]).split(".")[1]) >= 34;
const settings = { agentImage: "agent:1", idleTimeoutMs: 0 };

function workspace(namespace: string, spec: object): NormalWorkspace {
  const normal = normalizeWorkspace({ metadata: { name: "web", namespace }, spec });
  if (!normal.ok) throw new Error(JSON.stringify(normal.problems));
  return normal.value;
}

async function confinedNamespace(profile: string): Promise<TestNamespace> {
  const place = await testNamespace({ labels: { "pod-security.kubernetes.io/enforce": profile } });
  const metadata = { name: "default", namespace: place.name };
  await place.client.create(builtin.serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata });
  return place;
}

/** Why the API server rejects the pod; undefined if it admits it. */
async function rejection(place: TestNamespace, template: PodTemplateSpec): Promise<string | undefined> {
  try {
    const pod = podFor(workspace(place.name, {}), template);
    await place.client.create(builtin.pods, pod, { dryRun: true, fieldValidation: "Strict" });
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error.explanation;
    throw error;
  }
}

const firstSeed = testSeed("security of pods");

for (const securityProfile of securityProfiles) {
  test(`a plain workspace is admitted where ${securityProfile} is enforced`, async () => {
    await using place = await confinedNamespace(securityProfile);
    const built = buildPodTemplate(workspace(place.name, { securityProfile }), { settings });
    expect(built.ok && (await rejection(place, built.template))).toBeUndefined();
  });

  test(
    `random templates are accepted or rejected as by Pod Security: ${securityProfile}`,
    async () => {
      await using place = await confinedNamespace(securityProfile);
      const verdicts = { good: 0, bad: 0 };
      for (let seed = firstSeed; seed < firstSeed + 150; seed++) {
        const podTemplate = { spec: randomSecurity(seededRandom(seed).next) };
        const seen = JSON.stringify({ seed, podTemplate });
        const built = buildPodTemplate(workspace(place.name, { securityProfile, podTemplate }), { settings });
        if (built.ok) {
          verdicts.good++;
          expect([seen, await rejection(place, built.template)]).toEqual([seen, undefined]);
        } else {
          verdicts.bad++;
          if (!checksHosts && built.problems.every((problem) => problem.includes("calls the host"))) continue;
          const { template } = enforceProfile(unenforced(place.name, podTemplate), securityProfile);
          const verdict = (await rejection(place, template)) ?? `admitted: ${seen} ${built.problems.join()}`;
          expect(verdict).toMatch(/violates PodSecurity|cannot set `allowPrivilegeEscalation`/);
        }
      }
      expect(Math.min(verdicts.good, verdicts.bad)).toBeGreaterThan(10);
    },
    testTimeoutMs,
  );

  test(`an AppArmor annotation is accepted or rejected as by Pod Security: ${securityProfile}`, async () => {
    await using place = await confinedNamespace(securityProfile);
    const refused: string[] = [];
    for (const profile of ["runtime/default", "localhost/mine", "unconfined"]) {
      const annotations = { "container.apparmor.security.beta.kubernetes.io/pulumi": profile };
      const podTemplate = { metadata: { annotations } };
      const built = buildPodTemplate(workspace(place.name, { securityProfile, podTemplate }), { settings });
      const template = built.ok
        ? built.template
        : enforceProfile(unenforced(place.name, podTemplate), securityProfile).template;
      expect([profile, (await rejection(place, template)) === undefined]).toEqual([profile, built.ok]);
      if (!built.ok) refused.push(profile);
    }
    expect(refused).toEqual(["unconfined"]);
  });
}

test(
  "if the operator does not enforce the profile, the API server decides about every template",
  async () => {
    await using place = await confinedNamespace("privileged");
    const lenient = { ...settings, enforceSecurityProfile: false };
    for (let seed = firstSeed; seed < firstSeed + 150; seed++) {
      const podTemplate = { spec: randomSecurity(seededRandom(seed).next) };
      const seen = JSON.stringify({ seed, podTemplate });
      // The API server rejects contradictory templates in any case.
      if (/"privileged":true[^}]*"allowPrivilegeEscalation":false/.test(seen)) continue;
      const built = buildPodTemplate(workspace(place.name, { podTemplate }), { settings: lenient });
      expect([seen, built.ok ? await rejection(place, built.template) : built.problems]).toEqual([seen, undefined]);
    }
  },
  testTimeoutMs,
);

/** The template before the profile is enforced. */
function unenforced(namespace: string, podTemplate: object): PodTemplateSpec {
  const plain = buildPodTemplate(workspace(namespace, { securityProfile: "baseline" }), { settings });
  if (!plain.ok) throw new Error("the plain template is valid");
  return strategicMerge(plain.template as unknown as JsonMap, podTemplate as unknown as JsonMap, podTemplateSchema);
}

function randomSecurity(random: () => number): object {
  const maybe = (chance: number, part: object): object => (random() < chance ? part : {});
  const pick = <T>(...values: readonly [T, ...T[]]): T => values[Math.floor(random() * values.length)] ?? values[0];
  const context = (): object => ({
    ...maybe(0.2, { runAsNonRoot: pick(true, true, false) }),
    ...maybe(0.2, { runAsUser: pick(0, 1000, 2000) }),
    ...maybe(0.2, { seccompProfile: { type: pick("RuntimeDefault", "RuntimeDefault", "Unconfined") } }),
    ...maybe(0.1, {
      seLinuxOptions: pick<object>({ type: "container_t" }, { type: "spc_t" }, { user: "u" }, { level: "s0" }),
    }),
    ...maybe(0.1, { appArmorProfile: { type: pick("RuntimeDefault", "Unconfined") } }),
  });
  const container = (name: string): object => ({
    name,
    image: "busybox",
    securityContext: {
      ...context(),
      ...maybe(0.1, { privileged: pick(true, false) }),
      ...maybe(0.1, { allowPrivilegeEscalation: pick(true, false) }),
      ...maybe(0.2, {
        capabilities: pick<object>(
          { drop: ["KILL"] },
          { add: ["NET_BIND_SERVICE"] },
          { add: ["CHOWN"] },
          { add: ["SYS_ADMIN"] },
        ),
      }),
      ...maybe(0.05, { readOnlyRootFilesystem: true }),
    },
    ...maybe(0.1, {
      startupProbe: { tcpSocket: { port: 1, ...maybe(0.5, { host: pick("", "127.0.0.1", "10.0.0.1") }) } },
    }),
    ...maybe(0.1, { ports: [{ containerPort: 80, ...maybe(0.5, { hostPort: 80 }) }] }),
  });
  const isHost = random() < 0.05;
  return {
    ...maybe(0.5, {
      securityContext: {
        ...context(),
        ...maybe(0.1, { sysctls: [{ name: pick("net.ipv4.tcp_syncookies", "kernel.msgmax"), value: "1" }] }),
      },
    }),
    ...(isHost ? { [pick("hostPID", "hostIPC")]: true } : {}),
    ...maybe(0.6, { containers: [container("pulumi"), ...(random() < 0.5 ? [container("side")] : [])] }),
    ...maybe(0.2, {
      volumes: [
        {
          name: "extra",
          ...pick<object>(
            { hostPath: { path: "/" } },
            { emptyDir: {} },
            { nfs: { server: "s", path: "/" } },
            { image: { reference: "x", pullPolicy: "IfNotPresent" } },
            {
              ephemeral: {
                volumeClaimTemplate: {
                  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
                },
              },
            },
            { downwardAPI: { items: [] } },
            { configMap: { name: "c" } },
          ),
        },
      ],
    }),
  };
}
