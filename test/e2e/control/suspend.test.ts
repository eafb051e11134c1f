/** Suspension on a real cluster: of one Stack by its spec, and of all Stacks by the annotation of the operator's Lease. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";

import { leaseName, suspendAnnotation, type Stack } from "@pko/api";
import { waitFor } from "@pko/testkit";

import { operatorAccount } from "../../rights/account.ts";
import {
  applyTo,
  at,
  CliUser,
  clusterCredentials,
  execInPod,
  filesProject,
  getStack,
  isAt,
  isReady,
  kubectl,
  listUpdates,
  newNamespace,
  newStack,
  newStackWithDestroy,
  readyMessage,
  removeNamespace,
  requestReconcile,
  stackUntil,
  untilEvents,
  useScene,
  yamlProject,
} from "../harness.ts";

const slow = 600_000;
/** The operator's own namespace, with its Lease. */
let home: string;

const scene = useScene("suspend", {
  operator: async () => {
    home = await newNamespace("suspend-home");
    scene.defer(() => removeNamespace(home));
    const account = await operatorAccount({ admin: await clusterCredentials(), home, namespaces: [scene.namespace] });
    scene.defer(() => account.remove());
    const kubeconfig = join(scene.folder, "kubeconfig");
    await Bun.write(kubeconfig, account.kubeconfig);
    return { flags: [`--kubeconfig=${kubeconfig}`, `--namespace=${home}`, "--leader-elect"] };
  },
});

let repository: ReturnType<typeof scene.git.create>;

beforeAll(() => {
  repository = scene.git.create("website");
  repository.commit(yamlProject("one"));
  scene.git.create("files").commit(filesProject('new File("kept", "held");'));
});

const website = (name: string): object => newStack(name, scene.git.source("website"));

const reconciling = ({ status }: Stack): string | undefined =>
  status?.conditions?.find(({ type }) => type === "Reconciling")?.reason;

const isSuspended = (stack: Stack): boolean => reconciling(stack) === "Suspended";

async function setSuspend(name: string, suspend: boolean): Promise<void> {
  const patch = JSON.stringify({ spec: { suspend } });
  await kubectl(["patch", "stack", name, ...at(scene), "--type=merge", "--patch", patch]);
}

const annotateLease = (change: string): Promise<string> =>
  kubectl(["annotate", "lease", leaseName, "-n", home, `${suspendAnnotation}${change}`]);

const countUpdates = async (name: string): Promise<number> => (await listUpdates(scene, name)).length;

test(
  "a suspended Stack starts nothing until it is resumed, while others continue",
  async () => {
    await applyTo(scene, website("website"), website("other"));
    await Promise.all(["website", "other"].map((name) => stackUntil(scene, name, isReady)));
    await setSuspend("website", true);
    const suspended = await stackUntil(scene, "website", isSuspended);
    expect(readyMessage(suspended)).toContain("because spec.suspend is true: nothing starts");
    expect(suspended.status?.waiting?.for).toBe("the end of the suspension");
    expect(await kubectl(["get", "stack", "website", ...at(scene), "-o", "wide"])).toMatch(/SUSPENDED[^]*true/);

    const commit = repository.commit(yamlProject("two"));
    for (const name of ["website", "other"]) await requestReconcile(scene, name, "two");
    await stackUntil(scene, "other", isAt(commit));
    expect(isSuspended(await getStack(scene, "website"))).toBe(true);
    expect(await countUpdates("website")).toBe(1);

    await setSuspend("website", false);
    await stackUntil(scene, "website", isAt(commit));
    expect(await countUpdates("website")).toBe(2);
    await untilEvents(scene, "website", "StackSuspended", "StackResumed");
  },
  slow,
);

test(
  "the annotation of the Lease suspends all Stacks without a restart; a running update finishes, and a destroy waits",
  async () => {
    await applyTo(scene, newStackWithDestroy("files", scene.git.source("files")));
    const isCreating = async (): Promise<boolean> =>
      (await listUpdates(scene, "files")).some(({ status }) => status?.progress?.current?.includes("::kept"));
    await waitFor(isCreating, { timeoutMs: 240_000, what: "the creation of the file" });

    await annotateLease("=incident 42");
    const all = await stackUntil(scene, "website", isSuspended);
    expect(readyMessage(all)).toContain(`remove the annotation ${suspendAnnotation} from Lease ${leaseName}`);
    const why = await new CliUser(() => scene).why("website", "--operator-namespace", home);
    expect(why).toMatchObject({
      cause: "operatorSuspended",
      next: [`To resume: kubectl annotate lease ${leaseName} -n ${home} ${suspendAnnotation}-`],
    });
    await applyTo(scene, website("new"));
    await stackUntil(scene, "new", isSuspended);
    expect(await countUpdates("new")).toBe(0);

    // The running update finishes.
    expect(isSuspended(await getStack(scene, "files"))).toBe(false);
    await execInPod(scene, "files", "touch /state/release");
    const deployed = await stackUntil(scene, "files", isSuspended);
    expect(deployed.status?.lastUpdate).toMatchObject({ type: "up", state: "succeeded" });
    await kubectl(["delete", "stack", "files", ...at(scene), "--wait=false"]);
    await stackUntil(scene, "files", (stack) => readyMessage(stack).includes("its resources are not destroyed"));
    expect(await countUpdates("files")).toBe(1);
    expect(await execInPod(scene, "files", "cat /state/kept")).toBe("held");

    await annotateLease("-");
    await kubectl(["wait", "--for=delete", "stack/files", ...at(scene), "--timeout=240s"]);
    await Promise.all(["website", "new"].map((name) => stackUntil(scene, name, isReady)));
    expect(await execInPod(scene, "new", "ls /state")).not.toContain("kept");
    expect(await countUpdates("website")).toBe(2);
  },
  slow,
);
