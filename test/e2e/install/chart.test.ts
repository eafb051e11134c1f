/** The chart's life on a cluster: install, Stacks under it, upgrade to two replicas, loss of the leader, roll back, uninstall. */
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { createKey, serveGit } from "@pko/agent/testing";
import { caSecretName, leaseName } from "@pko/api";
import { createAuthority, network } from "@pko/cluster";
import { builtin, resource, type KubeObject } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  assertInstalledUnforbidden,
  at,
  deleteStack,
  getStack,
  isReady,
  kubectl,
  newNamespace,
  programOf,
  publishedImage,
  reconcile,
  removeNamespace,
  secretOf,
  stackOf,
  stackUntil,
  updatesOf,
  useScene,
} from "../harness.ts";
import { yamlProject } from "../operator/programs.ts";
import { startSshServer } from "../sources/ssh-server.ts";
import { chart, helm } from "./helm.ts";

const slow = 180_000;
const release = "pulumi-kubernetes-operator";

const leases = resource<KubeObject & { readonly spec?: { readonly holderIdentity?: string } }>({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  plural: "leases",
  namespaced: true,
});

const scene = useScene("chart-stacks", { operator: "none" });
/** Where the chart is installed. */
const home = `chart-${crypto.randomUUID().slice(0, 8)}`;
let values: string[];

describe("the chart on a cluster", () => {
  beforeAll(async () => {
    const [repository = "", tag = ""] = (await publishedImage()).replace("docker.io/", "").split(":");
    // Others may share the cluster: only the tests' own namespace is served, and no definition is changed.
    const settings = {
      "image.repository": repository,
      "image.tag": tag,
      watchNamespaces: `{${scene.namespace}}`,
      "crds.upgrade": "false",
      fullnameOverride: home,
      "controller.logFormat": "json",
    };
    scene.defer(() => removeNamespace(home));
    scene.defer(() => helm("uninstall", release, "-n", home, "--ignore-not-found", "--wait"));
    values = Object.entries(settings).map(([name, value]) => `--set=${name}=${value}`);
    const restricted = "pod-security.kubernetes.io/enforce=restricted";
    await kubectl(["label", "namespace", scene.namespace, restricted]);
  }, slow);

  test(
    "installs with the documents' command, and tells what to do next",
    async () => {
      const notes = await helm("install", "--create-namespace", "-n", home, release, chart, ...values, "--wait");
      expect(notes).toContain(`It serves ${scene.namespace} and no other namespace.`);
      expect(notes).toContain("kubectl create secret generic pulumi-api-secret");
      // Its pods would be let into a namespace with the strictest profile.
      const restricted = "pod-security.kubernetes.io/enforce=restricted";
      expect(await kubectl(["label", "namespace", home, restricted])).not.toContain("Warning");
    },
    slow,
  );

  test(
    "runs a Stack in a restricted namespace, and once more when it is annotated as the documents say",
    async () => {
      const kept = { type: "pulumi:index:Stash", properties: { input: "kept" } };
      await applyTo(
        scene,
        programOf("web", { resources: { kept } }),
        stackOf("web", { programRef: { name: "web" }, destroyOnFinalize: true }),
      );
      await stackUntil(scene, "web", isReady);
      const request = `pulumi.com/reconciliation-request=${new Date().toString()}`;
      await kubectl(["annotate", "stack", "web", request, "--overwrite", ...at(scene)]);
      await waitFor(async () => (await updatesOf(scene, "web")).length === 2, {
        timeoutMs: slow / 2,
        what: "a second Update",
      });
      await stackUntil(scene, "web", isReady);
      await nothingForbidden();
    },
    slow,
  );

  test(
    "leaves who breaks into its container without root, capabilities, and a file system to write to",
    async () => {
      const inContainer = (script: string): Promise<string> =>
        kubectl(["exec", `deployment/${home}-controller-manager`, "-n", home, "--", "sh", "-c", script]);
      // The image has a shell, and few other programs.
      const status = await inContainer("while read -r line; do echo $line; done < /proc/self/status");
      expect(status).toMatch(/^Uid: [1-9]/m);
      expect(status).toMatch(/^CapEff: 0+$/m);
      expect(status).toMatch(/^CapBnd: 0+$/m);
      expect(status).toMatch(/^NoNewPrivs: 1$/m);
      expect(
        await inContainer("for file in /written /usr/written /etc/written; do (echo > $file) || echo denied; done"),
      ).toBe("denied\n".repeat(3));
    },
    slow,
  );

  test(
    "asks Git servers with what its image holds: over https of a private authority, and over ssh with a locked key",
    async () => {
      const { folder, git } = scene;
      const repository = git.create("cloned");
      const authority = await createAuthority("a company's own");
      const tls = await authority.issue({ commonName: "git", ips: [network.machine] });
      const https = serveGit(git.folder, { hostname: network.machine, tls });
      // A server that a restricted namespace would not let in.
      const namespace = await newNamespace("chart-ssh");
      const password = "a passphrase";
      try {
        const [host, user] = [createKey(folder, "host"), createKey(folder, "user", password)];
        const ssh = await startSshServer({ namespace, repositories: git.folder, host, users: [user] });
        await applyTo(
          scene,
          secretOf("by-https", { accessToken: "any", "ca.crt": authority.cert }),
          secretOf("by-ssh", { sshPrivateKey: user.privateKey, password, known_hosts: ssh.knownHosts(host) }),
        );
        for (const [gitAuthSecret, projectRepo] of [
          ["by-https", `https://${network.machine}:${https.port}/cloned.git`],
          ["by-ssh", ssh.url("cloned")],
        ] as const) {
          const commit = repository.commit(yamlProject(gitAuthSecret));
          await applyTo(scene, stackOf("cloned", { branch: "main", projectRepo, gitAuthSecret }));
          const { status } = await stackUntil(scene, "cloned", isReady);
          expect(status?.lastUpdate?.lastSuccessfulCommit).toBe(commit);
        }
        await deleteStack(scene, "cloned");
      } finally {
        await https.stop();
        await removeNamespace(namespace);
      }
    },
    2 * slow,
  );

  test(
    "serves metrics to whom the cluster lets read them, and those that alerts and dashboard ask for",
    async () => {
      const scrape = await scraper();
      expect((await scrape()).status).toBe(401);
      const token = await tokenOf("scraper");
      expect((await scrape(token)).status).toBe(403);
      const role = `--clusterrole=${home}-metrics-reader`;
      await kubectl(["create", "clusterrolebinding", home, role, `--serviceaccount=${home}:scraper`]);
      try {
        // The refusal is remembered for the token: another one is asked about anew.
        const answer = await scrape(await tokenOf("scraper"));
        expect(answer.status).toBe(200);
        const exposed = new Set((await answer.text()).match(/^# TYPE \S+/gm)?.map((line) => line.slice(7)));
        expect(metricsAskedFor().filter((name) => !exposed.has(name))).toEqual([]);
      } finally {
        await kubectl(["delete", "clusterrolebinding", home]);
      }
    },
    slow,
  );

  test(
    "upgrades to two replicas without running anything again; when the leader's pod dies, the other goes on",
    async () => {
      await nothingForbidden();
      const before = (await updatesOf(scene, "web")).length;
      await helm("upgrade", "-n", home, release, chart, ...values, "--set=replicaCount=2", "--wait");
      expect(await kubectl(["get", "poddisruptionbudget", "-n", home, "-o", "name"])).toContain(home);
      const leader = await holder();
      await kubectl(["delete", "pod", leader, "-n", home, "--grace-period=0", "--force"]);
      await waitFor(async () => (await holder()) !== leader, { timeoutMs: slow / 2, what: "another leader" });
      expect((await updatesOf(scene, "web")).length).toBe(before);
      await reconcile(scene, "web", "again");
      await waitFor(async () => (await updatesOf(scene, "web")).length === before + 1, {
        timeoutMs: slow / 2,
        what: "an Update of the new leader",
      });
      await stackUntil(scene, "web", isReady);
    },
    slow,
  );

  test(
    "rolls back",
    async () => {
      await nothingForbidden();
      await helm("rollback", release, "1", "-n", home, "--wait");
      const deployment = ["get", "deployment", `${home}-controller-manager`, "-n", home];
      expect(await kubectl([...deployment, "-o", "jsonpath={.spec.replicas}"])).toBe("1");
      expect(await kubectl(["get", "poddisruptionbudget", "-n", home, "-o", "name"])).toBe("");
      expect(isReady(await getStack(scene, "web"))).toBe(true);
    },
    slow,
  );

  test(
    "destroys the Stack that is deleted; after uninstalling only the CRDs, the CA and the Lease stay",
    async () => {
      await deleteStack(scene, "web");
      await nothingForbidden();
      await helm("uninstall", release, "-n", home, "--wait");
      const kept = [`lease.coordination.k8s.io/${leaseName}`, `secret/${caSecretName}`];
      await waitFor(async () => (await leftovers()).toSorted().join() === kept.join(), {
        timeoutMs: slow / 2,
        what: "nothing else to be left",
      });
      expect(await kubectl(["get", "crd", "-o", "name"])).toContain("stacks.pulumi.com");
    },
    slow,
  );
});

async function pods(): Promise<
  readonly { readonly metadata: { name?: string }; readonly status?: { podIP?: string } }[]
> {
  const labelSelector = `app.kubernetes.io/instance=${release}`;
  return (await scene.client.list(builtin.pods, { namespace: home, labelSelector })).items;
}

/** The pod that leads. */
async function holder(): Promise<string> {
  const lease = await scene.client.get(leases, { namespace: home, name: "operator.pulumi.com" });
  return lease.spec?.holderIdentity?.split("_")[0] ?? "";
}

/** Before the pods with their logs are deleted. */
const nothingForbidden = (): Promise<void> => assertInstalledUnforbidden(home, `app.kubernetes.io/instance=${release}`);

async function scraper(): Promise<(token?: string) => Promise<Response>> {
  await kubectl(["create", "serviceaccount", "scraper", "-n", home]);
  const [pod] = await pods();
  const url = `https://${pod?.status?.podIP}:8383/metrics`;
  return (token) =>
    fetch(url, {
      tls: { rejectUnauthorized: false },
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
}

async function tokenOf(account: string): Promise<string> {
  return (await kubectl(["create", "token", account, "-n", home])).trim();
}

/** The names of metrics in the chart's alerts and dashboard, without the endings of histograms. */
function metricsAskedFor(): string[] {
  const rule = readFileSync(join(chart, "templates/prometheus-rule.yaml"), "utf8");
  const board = readFileSync(join(chart, "dashboard.json"), "utf8");
  const names = (rule + board).match(/\b[a-z]+(_[a-z]+)+(?=\{)/g) ?? [];
  return [...new Set(names.map((name) => name.replace(/_(bucket|count|sum)$/, "")))];
}

/** Whatever the release has made and is still there, in its namespace or beside. */
async function leftovers(): Promise<string[]> {
  const kinds = "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding";
  const inside =
    "deployment,replicaset,pod,service,secret,lease,role,rolebinding,serviceaccount,networkpolicy,configmap";
  const ofOthers = new Set(["configmap/kube-root-ca.crt", "serviceaccount/default", "serviceaccount/scraper"]);
  const names = async (...args: readonly string[]): Promise<string[]> =>
    (await kubectl(["get", ...args, "-o", "name"])).split("\n").filter((line) => line !== "" && !ofOthers.has(line));
  return [
    ...(await names(kinds)).filter((line) => line.includes(home)),
    ...(await names(inside, "-n", home)),
    ...(await names("role,rolebinding", ...at(scene))),
  ];
}
