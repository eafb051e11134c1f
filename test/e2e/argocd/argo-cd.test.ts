/** Stacks under Argo CD: it syncs them from Git, shows their health, and deletes them together with their resources. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import type { TestRepository } from "@pko/agent/testing";
import type { Stack } from "@pko/api";
import { serveCloud, waitFor, type Cloud } from "@pko/testkit";

import {
  applyTo,
  getStack,
  isReady,
  javascriptProject,
  kubectl,
  listUpdates,
  machineAddress,
  newSecret,
  stackUntil,
  useScene,
} from "../harness.ts";
import {
  applicationUntil,
  deleteApplication,
  isDegraded,
  isHealthy,
  refresh,
  resourceTree,
  runAction,
  stackNode,
} from "./applications.ts";
import { startArgoCd, type ArgoCd } from "./argo-cd.ts";
import { exampleFiles, type Replacements } from "./layouts.ts";

const slow = 600_000;
const scene = useScene("argo-apps");
let argoCd: ArgoCd;
let cloud: Cloud;
let replacements: Replacements;

/** Creates a repository with the files of an example. */
function createExampleRepository(
  folder: string,
  name: string,
): { files: Record<string, string>; repository: TestRepository } {
  const files = exampleFiles(folder, replacements);
  const repository = scene.git.create(name);
  repository.commit(files);
  return { files, repository };
}

const applyText = async (text = ""): Promise<string> => await kubectl(["apply", "-f", "-"], { input: text });

const createdAt = ({ metadata }: { metadata: { creationTimestamp?: string } }): number =>
  Date.parse(metadata.creationTimestamp ?? "");

const readySince = ({ status }: Stack): number =>
  Date.parse(status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "");

describe("an Application", () => {
  beforeAll(async () => {
    const { namespace, git } = scene;
    cloud = serveCloud({ hostname: machineAddress });
    scene.defer(() => cloud.stop());
    const token = cloud.tokens.issue({ kind: "organization", login: "myorg", organizations: ["myorg"] });
    await applyTo(scene, newSecret("pulumi-access-token", { token }));
    argoCd = await startArgoCd([namespace]);
    replacements = { gitUrl: git.origin, cloudUrl: cloud.url, namespace, argoCd: argoCd.namespace };
  }, slow);

  // Before the scene deletes Stacks of failed tests, which Argo CD would create again.
  afterAll(async () => {
    await argoCd?.stop();
  }, slow);

  test.concurrent(
    "syncs the Stack next to its program, stays Synced, runs it again on request, and destroys it on deletion",
    async () => {
      const { files, repository } = createExampleRepository("beside-the-program", "my-app");
      await applyText(files["application.yaml"]);
      await applicationUntil(argoCd, "my-app", isHealthy);
      const { status } = await getStack(scene, "my-app-dev");
      expect(status?.outputs).toEqual({ state: "my-app runs 2 times" });
      expect(cloud.stack("myorg/my-app/dev")?.resources).not.toEqual([]);
      const node = await stackNode(argoCd, "my-app");
      expect(node?.health?.message).toMatch(/^The last update succeeded/);
      expect(node?.networkingInfo?.externalURLs).toEqual(["https://app.pulumi.com/myorg/my-app/dev"]);
      const kinds = (await resourceTree(argoCd, "my-app")).map(({ kind }) => kind);
      for (const kind of ["Workspace", "Update", "Pod"]) expect(kinds).toContain(kind);

      const resource = { application: "my-app", namespace: scene.namespace, stack: "my-app-dev" };
      await runAction(argoCd, { ...resource, action: "reconcile" });
      await stackUntil(
        scene,
        "my-app-dev",
        (stack) => isReady(stack) && (stack.status?.lastUpdate?.reconcileRequest ?? "") !== "",
      );
      expect(await listUpdates(scene, "my-app-dev")).toHaveLength(2);
      await refresh(argoCd, "my-app");
      const settled = await applicationUntil(argoCd, "my-app", isHealthy);
      // Neither the operator nor the action has made a change that Argo CD had to revert.
      expect(settled.status.history).toHaveLength(1);

      const manifest = "deploy/stack.yaml";
      const wave = 'argocd.argoproj.io/sync-wave: "3"\n';
      const request = `${wave}    pulumi.com/reconciliation-request: from-git\n`;
      repository.commit({ ...files, [manifest]: (files[manifest] ?? "").replace(wave, request) });
      await refresh(argoCd, "my-app");
      await stackUntil(scene, "my-app-dev", ({ status }) => status?.lastUpdate?.reconcileRequest === "from-git");
      await applicationUntil(argoCd, "my-app", isHealthy);

      await deleteApplication(argoCd, "my-app");
      expect(cloud.stack("myorg/my-app/dev")?.resources).toEqual([]);
    },
    slow,
  );

  test.concurrent(
    "is Degraded with the error of a broken program, continues with the next wave once it is fixed, and is deleted in the foreground",
    async () => {
      const { files, repository } = createExampleRepository("program", "queue");
      const program = "deploy/program.yaml";
      const broken = (files[program] ?? "").replace("${settings.input}", "${nothing.here}");
      repository.commit({ ...files, [program]: broken });
      await applyText(files["application.yaml"]);
      const degraded = await applicationUntil(argoCd, "queue", isDegraded);
      // Not in one read: the next attempt makes the Stack Progressing again.
      const isDegradedStack = async (): Promise<boolean> => {
        const { status, message = "" } = (await stackNode(argoCd, "queue"))?.health ?? {};
        return status === "Degraded" && message.includes('variable named "nothing" could not be found');
      };
      await waitFor(isDegradedStack, { timeoutMs: 120_000, what: "the error of the program in the resource tree" });
      // The Stack's wave has failed, so the next one has not started.
      expect(degraded.status.sync.status).toBe("OutOfSync");
      const later = [
        "get",
        "configmap",
        "queue-is-there",
        "-n",
        scene.namespace,
        "--ignore-not-found",
        "--output=json",
      ];
      expect(await kubectl(later)).toBe("");

      repository.commit(files);
      await refresh(argoCd, "queue");
      await applicationUntil(argoCd, "queue", isHealthy);
      const stack = await getStack(scene, "queue");
      expect(stack.status?.outputs).toEqual({ address: "https://queue.example.com" });
      expect(createdAt(JSON.parse(await kubectl(later)) as Stack)).toBeGreaterThanOrEqual(readySince(stack));

      const finalizers = ["resources-finalizer.argocd.argoproj.io"];
      await kubectl([
        "patch",
        "application",
        "queue",
        "-n",
        argoCd.namespace,
        "--type=merge",
        "-p",
        JSON.stringify({ metadata: { finalizers } }),
      ]);
      await deleteApplication(argoCd, "queue");
      expect(cloud.stack("myorg/queue/dev")?.resources).toEqual([]);
    },
    slow,
  );

  test.concurrent(
    "of Applications deploys a preview, staging from main, and production from the release branch",
    async () => {
      const program = createExampleRepository("trunk-based/pulumi-webapp", "pulumi-webapp");
      const released = program.repository.commit(program.files, "release");
      program.repository.commit(program.files, "feature/add-cache");
      const staged = program.repository.commit({ ...program.files, "NOTES.md": "not released yet" }, "main");
      const { files } = createExampleRepository("trunk-based/webapp-manifests", "webapp-manifests");
      await applyText(files["root.yaml"]);
      await applicationUntil(argoCd, "webapp", isHealthy);
      const names = ["webapp-preview", "webapp-staging", "webapp-production"] as const;
      await Promise.all(names.map((name) => applicationUntil(argoCd, name, isHealthy)));
      const [preview, staging, production] = await Promise.all(names.map((name) => getStack(scene, name)));
      expect(preview?.status?.lastUpdate).toMatchObject({ type: "preview", state: "succeeded" });
      expect(staging?.status?.lastUpdate?.lastSuccessfulCommit).toBe(staged);
      expect(staging?.status?.outputs).toEqual({ state: "webapp runs 2 times" });
      expect(production?.status?.lastUpdate?.lastSuccessfulCommit).toBe(released);
      expect(production?.status?.outputs).toEqual({ state: "webapp runs 4 times" });
      const resources = (environment: string): readonly unknown[] | undefined =>
        cloud.stack(`myorg/webapp/${environment}`)?.resources;
      expect(resources("preview")).toEqual([]);

      await deleteApplication(argoCd, "webapp");
      expect(resources("staging")).toEqual([]);
      // This Stack does not set destroyOnFinalize.
      expect(resources("production")).not.toEqual([]);
    },
    slow,
  );

  test.concurrent(
    "deploys a cluster before its applications, and destroys it after them",
    async () => {
      createExampleRepository("clusters/pulumi-eks", "pulumi-eks");
      createExampleRepository("clusters/pulumi-apps", "pulumi-apps");
      const { files } = createExampleRepository("clusters/gitops-repo", "gitops-repo");
      await applyText(files["argocd/dev-app.yaml"]);
      await applicationUntil(argoCd, "dev", isHealthy);
      const [cluster, apps] = await Promise.all([getStack(scene, "cluster-dev"), getStack(scene, "apps-dev")]);
      expect(createdAt(apps)).toBeGreaterThanOrEqual(readySince(cluster));
      expect(cluster.status?.outputs).toEqual({ kubeconfig: "[secret]" });
      expect(apps.status?.outputs).toEqual({ deployed: "an app" });

      await deleteApplication(argoCd, "dev");
      const destroys = cloud.requests.flatMap(
        (request) => /^POST .*(eks-cluster|k8s-apps)\/dev\/destroy 2/.exec(request)?.[1] ?? [],
      );
      expect(destroys).toEqual(["k8s-apps", "eks-cluster"]);
    },
    slow,
  );

  test.concurrent(
    "cancels an update by an action, and does not retry it",
    async () => {
      const deploy = { ...exampleFiles("beside-the-program", replacements) };
      const stack = (deploy["deploy/stack.yaml"] ?? "").replaceAll("my-app", "slow-app");
      const application = (deploy["application.yaml"] ?? "").replaceAll("my-app", "slow-app");
      scene.git.create("slow-app").commit({ ...slowProject, "deploy/stack.yaml": stack });
      await applyText(application);
      await stackUntil(scene, "slow-app-dev", ({ status }) => status?.currentUpdate !== undefined);
      await stackUntil(
        scene,
        "slow-app-dev",
        ({ status }) => status?.conditions?.[0]?.message.includes("has been running") ?? false,
      );
      const resource = { application: "slow-app", namespace: scene.namespace, stack: "slow-app-dev" };
      await runAction(argoCd, { ...resource, action: "cancel" });
      await applicationUntil(argoCd, "slow-app", isDegraded);
      const cancelled = await getStack(scene, "slow-app-dev");
      const isCancelled = async (): Promise<boolean> =>
        /was cancelled, as requested/.test((await stackNode(argoCd, "slow-app"))?.health?.message ?? "");
      await waitFor(isCancelled, { what: "the cancellation in the resource tree" });
      expect(cancelled.status?.lastUpdate).toMatchObject({ state: "failed", failure: "cancelled" });
      expect(cancelled.status?.next).toBeUndefined();
      await deleteApplication(argoCd, "slow-app");
    },
    slow,
  );
});

/** Runs longer than the test. */
const slowProject = javascriptProject("slow-app", "setTimeout(() => {}, 1_000_000);\n");
