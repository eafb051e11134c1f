/** The chart on a cluster: install, run Stacks, use the console, take over a Stack, upgrade to two replicas, lose the leader, roll back, uninstall. */
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { createKey, serveGit } from "@pko/agent/testing";
import { caSecretName, leaseName } from "@pko/api";
import { clusterKubeconfig, createCa } from "@pko/cluster";
import { builtin } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import { launchBrowser, Visitor } from "../../browser/visitor.ts";
import { needsPods, splitAt, stepName, stepPages, stepsOf, stepsOn, type Step } from "../../docs/steps.ts";
import { Shell } from "../../integration/docs/shell.ts";
import {
  applyTo,
  assertCleanLogs,
  at,
  deleteStack,
  getStack,
  hasReason,
  isReady,
  kubectl,
  listUpdates,
  localTest,
  machineAddress,
  newNamespace,
  newProgram,
  newSecret,
  newStack,
  reconcileAndWait,
  removeNamespace,
  stackUntil,
  useScene,
  yamlProject,
} from "../harness.ts";
import { startSshServer } from "../sources/ssh-server.ts";
import { chart, helm } from "./helm.ts";
import { portForward } from "./port-forward.ts";
import { chartValues, installChart, leaderPod, release, uninstallAfter } from "./release.ts";

const slow = 180_000;
const scene = useScene("chart-stacks", { operator: "none" });
/** The namespace of the release. */
const home = `chart-${crypto.randomUUID().slice(0, 8)}`;
let values: string[];

describe("the chart on a cluster", () => {
  beforeAll(async () => {
    scene.defer(() => shell[Symbol.dispose]());
    uninstallAfter(scene, home);
    values = await chartValues(home, scene, { "controller.logFormat": "json", "console.enabled": "true" });
    const restricted = "pod-security.kubernetes.io/enforce=restricted";
    await kubectl(["label", "namespace", scene.namespace, restricted]);
  }, slow);

  test(
    "installs with the documented command, and prints the next steps",
    async () => {
      const notes = await installChart(home, values);
      expect(notes).toContain(`It watches only these namespaces: ${scene.namespace}.`);
      expect(notes).toContain("kubectl create secret generic pulumi-api-secret");
      // Admission would accept its pods under the restricted profile.
      const restricted = "pod-security.kubernetes.io/enforce=restricted";
      expect(await kubectl(["label", "namespace", home, restricted])).not.toContain("Warning");
    },
    slow,
  );

  test(
    "runs a Stack in a restricted namespace, and again when it gets the documented annotation",
    async () => {
      const kept = { type: "pulumi:index:Stash", properties: { input: "kept" } };
      await applyTo(
        scene,
        newProgram("web", { resources: { kept } }),
        newStack("web", { programRef: { name: "web" }, destroyOnFinalize: true }),
      );
      await stackUntil(scene, "web", isReady);
      const request = `pulumi.com/reconciliation-request=${new Date().toString()}`;
      await kubectl(["annotate", "stack", "web", request, "--overwrite", ...at(scene)]);
      await waitFor(async () => (await listUpdates(scene, "web")).length === 2, {
        timeoutMs: slow / 2,
        what: "a second Update",
      });
      await stackUntil(scene, "web", isReady);
      await assertCleanOperatorLogs();
    },
    slow,
  );

  test(
    "serves the console: each user sees what the own token allows, and the console has no permission",
    async () => {
      await using console = await portForward(`service/${home}-console`, { namespace: home, port: 80 });
      const stacksPath = `/k8s/apis/pulumi.com/v1/namespaces/${scene.namespace}/stacks`;
      expect((await fetch(`${console.origin}${stacksPath}`)).status).toBe(401);

      await using viewer = await createViewer("viewer");
      const browser = await launchBrowser();
      try {
        const user = new Visitor(await browser.newPage(), console.origin);
        await user.open("/", "Sign in");
        await user.signIn(viewer.token);
        await user.untilText("You do not have permission to list the Stacks of all namespaces.");
        await user.open(`/?namespace=${scene.namespace}`, "Stacks");
        await user.untilText("1 Stack");
        await user.follow(/^Ready web/);
        await user.untilText("Read-only: you lack the permission patch stacks.pulumi.com");
        await user.open(`/stacks/${home}/web`, "web");
        await user.untilText(`You do not have permission to view the Stack ${home}/web.`);
      } finally {
        await browser.close();
      }

      // What every account may do, and nothing else.
      expect(await permissionsOf(`${home}-console`)).toBe(await permissionsOf("stranger"));
      const script = "[ -e /var/run/secrets/kubernetes.io/serviceaccount ] || echo none";
      expect(await kubectl(["exec", `deployment/${home}-console`, "-n", home, "--", "sh", "-c", script])).toBe(
        "none\n",
      );
    },
    slow,
  );

  test(
    "stops everything and resumes it with the documented commands",
    async () => {
      await assertCleanOperatorLogs();
      const before = (await listUpdates(scene, "web")).length;
      const [stopAll, stopOperator, resume] = splitAt(stepsOf("break-glass.md", "Stop everything"), "kubectl scale ");
      for (const step of stopAll) await execute(step);
      await stackUntil(scene, "web", hasReason("Suspended"));
      await execute(stopOperator);
      await waitFor(async () => (await operatorPods()).length === 0, { timeoutMs: slow / 2, what: "no operator" });
      for (const step of resume) await execute(step);
      await stackUntil(scene, "web", isReady);
      expect((await listUpdates(scene, "web")).length).toBe(before);
    },
    slow,
  );

  test(
    "hands a Stack over to a person, and takes it back, with the documented commands",
    async () => {
      const before = (await listUpdates(scene, "web")).length;
      const steps = stepsOf("break-glass.md", "Take over a Stack by hand");
      const typed = steps.filter(({ line }) => line.startsWith("pulumi "));
      const [takeOver, openShell, handBack] = splitAt(
        steps.filter((step) => !typed.includes(step)),
        "kubectl exec ",
      );
      for (const step of takeOver) await execute(step);
      const lines = typed.map(({ line }) => line.replace(/urn:\S+/, "'**kept'"));
      // There is no terminal for the confirmations.
      const input = ["set -e", "export PULUMI_SKIP_CONFIRMATIONS=true", ...lines].join("\n");
      expect(await execute(openShell, `${input}\n`)).toMatch(/^web\n[^]*Resources:\n +2 unchanged/);
      for (const step of typed) executed.add(stepName(step));
      for (const step of handBack) await execute(step);
      expect((await listUpdates(scene, "web")).length).toBe(before + 1);
    },
    2 * slow,
  );

  test(
    "runs its container without root, without capabilities and with a read-only file system",
    async () => {
      const inContainer = (script: string): Promise<string> =>
        kubectl(["exec", `deployment/${home}-controller-manager`, "-n", home, "--", "sh", "-c", script]);
      // The image has a shell and few other programs.
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

  localTest(test, "it publishes an image with an SSH server")(
    "reads Git repositories with the tools of its image: over HTTPS with a private CA, and over SSH with an encrypted key",
    async () => {
      const { folder, git } = scene;
      const repository = git.create("cloned");
      const ca = await createCa("a private CA");
      const tls = await ca.issue({ commonName: "git", ips: [machineAddress] });
      const https = serveGit(git.folder, { hostname: machineAddress, tls });
      // The restricted namespace would reject the pod of the SSH server.
      const namespace = await newNamespace("chart-ssh");
      const password = "a passphrase";
      try {
        const [host, user] = [createKey(folder, "host"), createKey(folder, "user", password)];
        const ssh = await startSshServer({ namespace, repositories: git.folder, host, users: [user] });
        await applyTo(
          scene,
          newSecret("by-https", { accessToken: "any", "ca.crt": ca.cert }),
          newSecret("by-ssh", { sshPrivateKey: user.privateKey, password, known_hosts: ssh.knownHosts(host) }),
        );
        for (const [gitAuthSecret, projectRepo] of [
          ["by-https", `https://${machineAddress}:${https.port}/cloned.git`],
          ["by-ssh", ssh.url("cloned")],
        ] as const) {
          const commit = repository.commit(yamlProject(gitAuthSecret));
          await applyTo(scene, newStack("cloned", { branch: "main", projectRepo, gitAuthSecret }));
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
    "serves metrics only to authorized clients, including all metrics of the alerts and the dashboard",
    async () => {
      const scrape = await scraper();
      expect((await scrape()).status).toBe(401);
      const token = await createToken("scraper");
      expect((await scrape(token)).status).toBe(403);
      const role = `--clusterrole=${home}-metrics-reader`;
      await kubectl(["create", "clusterrolebinding", home, role, `--serviceaccount=${home}:scraper`]);
      try {
        // The API server respects the binding after a moment, and the operator caches the denial of a token.
        const response = await waitFor(
          async () => {
            const answer = await scrape(await createToken("scraper"));
            return answer.ok && answer;
          },
          { what: "the metrics for a client that may read them" },
        );
        const exposed = new Set((await response.text()).match(/^# TYPE \S+/gm)?.map((line) => line.slice(7)));
        expect(queriedMetrics().filter((name) => !exposed.has(name))).toEqual([]);
      } finally {
        await kubectl(["delete", "clusterrolebinding", home]);
      }
    },
    slow,
  );

  test(
    "upgrades to two replicas without new updates, and the second replica takes over when the pod of the leader is deleted",
    async () => {
      await assertCleanOperatorLogs();
      const before = (await listUpdates(scene, "web")).length;
      await helm("upgrade", "-n", home, release, chart, ...values, "--set=replicaCount=2", "--wait");
      expect(await kubectl(["get", "poddisruptionbudget", "-n", home, "-o", "name"])).toContain(home);
      // The pod of the former template may still hold the Lease.
      const leader = await waitFor(() => leaderPod(home), { timeoutMs: slow / 2, what: "a leader" });
      await kubectl(["delete", "pod", leader, "-n", home, "--grace-period=0", "--force"]);
      const isReplaced = async (): Promise<boolean> => ![undefined, leader].includes(await leaderPod(home));
      await waitFor(isReplaced, { timeoutMs: slow / 2, what: "another leader" });
      expect((await listUpdates(scene, "web")).length).toBe(before);
      await reconcileAndWait(scene, "web", "new-leader");
      expect((await listUpdates(scene, "web")).length).toBe(before + 1);
    },
    2 * slow,
  );

  test(
    "rolls back",
    async () => {
      await assertCleanOperatorLogs();
      await helm("rollback", release, "1", "-n", home, "--wait");
      const deployment = ["get", "deployment", `${home}-controller-manager`, "-n", home];
      expect(await kubectl([...deployment, "-o", "jsonpath={.spec.replicas}"])).toBe("1");
      expect(await kubectl(["get", "poddisruptionbudget", "-n", home, "-o", "name"])).toBe("");
      expect(isReady(await getStack(scene, "web"))).toBe(true);
    },
    slow,
  );

  test(
    "upgrades and rolls back with the documented commands, without new updates",
    async () => {
      await assertCleanOperatorLogs();
      const before = (await listUpdates(scene, "web")).length;
      const steps = ["Before", "Upgrade", "Verify", "Roll back"].flatMap((heading) => stepsOf("upgrade.md", heading));
      // The manifest would install a second operator.
      for (const step of steps.filter(({ line }) => !line.startsWith("kubectl apply "))) await execute(step);
      expect(await helm("history", release, "-n", home, "-o", "json")).toContain("Rollback to 3");
      expect(isReady(await getStack(scene, "web"))).toBe(true);
      expect((await listUpdates(scene, "web")).length).toBe(before);
    },
    slow,
  );

  test("has executed all documented commands that need pods", () => {
    const steps = stepPages.flatMap(stepsOn).filter(needsPods).map(stepName);
    expect(steps.length).toBeGreaterThan(4);
    expect(steps.filter((name) => !executed.has(name))).toEqual([]);
  });

  test(
    "destroys a deleted Stack, and uninstalling leaves only the CRDs, the CA and the Lease",
    async () => {
      await deleteStack(scene, "web");
      await assertCleanOperatorLogs();
      await helm("uninstall", release, "-n", home, "--wait");
      const kept = [`lease.coordination.k8s.io/${leaseName}`, `secret/${caSecretName}`];
      await waitFor(async () => (await leftovers()).toSorted().join() === kept.join(), {
        timeoutMs: slow / 2,
        what: "everything else to be deleted",
      });
      expect(await kubectl(["get", "crd", "-o", "name"])).toContain("stacks.pulumi.com");
    },
    slow,
  );
});

const shell = new Shell({ kubeconfig: clusterKubeconfig() });
/** Of the pages. */
const executed = new Set<string>();

/** Executes a command of a page about the release and its Stack. */
async function execute(step: Step, input?: string): Promise<string> {
  const line = step.line
    .replaceAll(`-n ${release}`, `-n ${home}`)
    .replaceAll("-n team-a", at(scene).join(" "))
    .replaceAll("website", "web");
  const output = await shell.run(line, input);
  executed.add(stepName(step));
  return output;
}

async function operatorPods(): Promise<
  readonly { readonly metadata: { name?: string }; readonly status?: { podIP?: string } }[]
> {
  const labelSelector = `app.kubernetes.io/instance=${release},app.kubernetes.io/name=${release}`;
  return (await scene.client.list(builtin.pods, { namespace: home, labelSelector })).items;
}

/** Call this before the pods are deleted, because it reads their logs. */
const assertCleanOperatorLogs = (): Promise<void> => assertCleanLogs(home, `app.kubernetes.io/instance=${release}`);

async function scraper(): Promise<(token?: string) => Promise<Response>> {
  await kubectl(["create", "serviceaccount", "scraper", "-n", home]);
  const [pod] = await operatorPods();
  const url = `https://${pod?.status?.podIP}:8383/metrics`;
  return (token) =>
    fetch(url, {
      tls: { rejectUnauthorized: false },
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
}

interface Viewer extends AsyncDisposable {
  readonly token: string;
}

/** An account of the Stacks' namespace that may view this namespace. */
async function createViewer(name: string): Promise<Viewer> {
  const { namespace } = scene;
  await kubectl(["create", "serviceaccount", name, ...at(scene)]);
  const account = `--serviceaccount=${namespace}:${name}`;
  await kubectl(["create", "rolebinding", name, "--clusterrole=view", account, ...at(scene)]);
  return {
    token: (await kubectl(["create", "token", name, ...at(scene)])).trim(),
    [Symbol.asyncDispose]: async () => void (await kubectl(["delete", "rolebinding", name, ...at(scene)])),
  };
}

/** Of a service account in the namespace of the release. */
const permissionsOf = (account: string): Promise<string> =>
  kubectl(["auth", "can-i", "--list", "-n", home, `--as=system:serviceaccount:${home}:${account}`]);

async function createToken(account: string): Promise<string> {
  return (await kubectl(["create", "token", account, "-n", home])).trim();
}

/** The metrics in the chart's alerts and dashboard, without the suffixes of histograms. */
function queriedMetrics(): string[] {
  const rule = readFileSync(join(chart, "templates/prometheus-rule.yaml"), "utf8");
  const board = readFileSync(join(chart, "dashboard.json"), "utf8");
  const names = [rule.match(/\b[a-z]+(_[a-z]+)+(?=[{"])/g), board.match(/\b[a-z]+(_[a-z]+)+(?=\{)/g)];
  return [...new Set(names.flatMap((found) => found ?? []).map((name) => name.replace(/_(bucket|count|sum)$/, "")))];
}

/** Objects of the release that still exist, in its namespace and cluster-wide. */
async function leftovers(): Promise<string[]> {
  const kinds = "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding";
  const inside =
    "deployment,replicaset,pod,service,secret,lease,role,rolebinding,serviceaccount,networkpolicy,configmap";
  const unrelated = new Set(["configmap/kube-root-ca.crt", "serviceaccount/default", "serviceaccount/scraper"]);
  const names = async (...args: readonly string[]): Promise<string[]> =>
    (await kubectl(["get", ...args, "-o", "name"])).split("\n").filter((line) => line !== "" && !unrelated.has(line));
  return [
    ...(await names(kinds)).filter((line) => line.includes(home)),
    ...(await names(inside, "-n", home)),
    ...(await names("role,rolebinding", ...at(scene))),
  ];
}
