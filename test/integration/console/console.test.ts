/** The console against a real API server: whose data users see, what they may do, and how pages stay current. */
import { limits } from "@pko/console/contract";
import { kubeconfigCredentials } from "@pko/kube";
import { startApiServer, testNamespace, waitFor } from "@pko/testkit";
import { startConsole } from "@pko/console";
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { apiServerWithApi, stacks, testTimeoutMs } from "../api/install.ts";
import { ConsoleStage, nameOf, TestStream, viewRule } from "./stage.ts";

setDefaultTimeout(testTimeoutMs);

const api = "/k8s/apis/pulumi.com/v1";

interface List {
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

const namesIn = async (response: Response): Promise<string[]> =>
  ((await response.json()) as List).items.map(({ metadata }) => metadata.name).toSorted();

interface Status {
  readonly kind: string;
  readonly reason: string;
  readonly message: string;
}

describe("permissions", () => {
  test("two users see what each of them may see", async () => {
    await using stage = await ConsoleStage.set();
    await using other = await testNamespace();
    const [mine, theirs] = [stage.namespace, other.name];
    const jane = await stage.user("jane", [viewRule]);
    const joe = await stage.user("joe", [viewRule], theirs);
    await stage.stack("web");
    await stage.stack("db", theirs);
    const path = (namespace: string): string => `${api}/namespaces/${namespace}/stacks`;
    await stage.until(jane, path(mine), 200);
    await stage.until(joe, path(theirs), 200);
    expect(await namesIn(await stage.send(jane, path(mine)))).toEqual(["web"]);
    expect(await namesIn(await stage.send(joe, path(theirs)))).toEqual(["db"]);
    for (const [token, namespace] of [
      [jane, theirs],
      [joe, mine],
    ] as const) {
      const denied = await stage.send(token, path(namespace));
      const status = (await denied.json()) as Status;
      expect([denied.status, status.kind, status.reason]).toEqual([403, "Status", "Forbidden"]);
      expect(status.message).toContain(`cannot list resource "stacks"`);
    }
  });

  test("a page without permissions learns which ones are missing, and shows the rest", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace } = stage;
    const jane = await stage.user("jane", [viewRule]);
    await stage.stack("web");
    await stage.until(jane, `${api}/namespaces/${namespace}/stacks`, 200);
    const page = await stage.stream(jane, [
      stage.stacksIn(namespace),
      { id: "everywhere", kind: "watch", resource: "stacks" },
      { id: "pods", kind: "watch", resource: "pods", namespace },
      { id: "log", kind: "log", namespace, pod: "web-workspace-0", container: "pulumi" },
    ]);
    await page.next("synced", ({ id }) => id === "s");
    const permission = async (of: string): Promise<string> =>
      (await page.next("denied", ({ id }) => id === of)).permission;
    expect(await permission("log")).toBe(`get pods/log in namespace ${namespace}`);
    expect(await permission("pods")).toBe(`list pods in namespace ${namespace}`);
    expect(await permission("everywhere")).toBe("list stacks.pulumi.com in the whole cluster");
    expect(page.names()).toEqual(["web"]);
  });

  test("without a token, or with one that the API server refuses, there is no data", async () => {
    await using stage = await ConsoleStage.set();
    const path = `${api}/namespaces/${stage.namespace}/stacks`;
    expect((await stage.send("", path)).status).toBe(401);
    expect(stage.proxy.requests).toEqual([]);
    expect((await stage.send("invalid", path)).status).toBe(401);
    expect(await (await stage.send("invalid", "/session")).json()).toEqual({ signedIn: false, mode: "proxy" });
    const page = await stage.stream("", [stage.stacksIn(stage.namespace)]);
    expect([page.status, page.contentType]).toEqual([401, "application/json"]);
  });

  test("the session names the user, and a token can be entered", async () => {
    await using stage = await ConsoleStage.set();
    const token = await stage.user("jane", []);
    const user = `system:serviceaccount:${stage.namespace}:jane`;
    expect(await (await stage.send(token, "/session")).json()).toEqual({ signedIn: true, mode: "proxy", user });
    const response = await stage.send("", "/session", { method: "POST", body: JSON.stringify({ token }) });
    expect(await response.json()).toEqual({ signedIn: true, mode: "token", user });
    const wrong = await stage.send("", "/session", { method: "POST", body: JSON.stringify({ token: "wrong" }) });
    expect(wrong.status).toBe(401);
  });

  test("with a kubeconfig, the client certificate is used", async () => {
    const server = await apiServerWithApi();
    const credentials = await kubeconfigCredentials(server.kubeconfig);
    const console = await startConsole({
      signIn: { mode: "kubeconfig", credentials, context: "testkit" },
      port: 0,
      assets: new Map(),
    });
    const origin = `http://127.0.0.1:${console.port}`;
    const response = await fetch(`${origin}/session`, {
      method: "POST",
      headers: { origin, "x-pulumi-console": "1", "content-type": "application/json" },
      body: JSON.stringify({ token: new URL(console.url).hash.replace("#token=", "") }),
    });
    expect(await response.json()).toEqual({ signedIn: true, mode: "kubeconfig", user: "admin", context: "testkit" });
    const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
    expect((await fetch(`${origin}${api}/stacks`, { headers: { cookie } })).status).toBe(200);
    await console.stop();
  });
});

describe("actions", () => {
  const edit = { apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["patch"] };

  test("a user who may do so suspends a Stack; another one is refused by the API server", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace, client } = stage;
    await stage.stack("web");
    const path = `${api}/namespaces/${namespace}/stacks/web`;
    const [jane, joe] = [await stage.user("jane", [viewRule, edit]), await stage.user("joe", [viewRule])];
    const body = JSON.stringify({ spec: { suspend: true } });
    const patch = async (token: string): Promise<number> =>
      (await stage.send(token, path, { method: "PATCH", body })).status;
    await stage.until(joe, path, 200);
    expect(await patch(joe)).toBe(403);
    await waitFor(async () => (await patch(jane)) === 200, { timeoutMs: 30_000 });
    const { spec, metadata } = await client.get(stacks, { namespace, name: "web" });
    expect(spec.suspend).toBe(true);
    expect(metadata.managedFields?.map(({ manager }) => manager)).toContain("pulumi-console");
  });

  test("may I? answers for the user", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace } = stage;
    const jane = await stage.user("jane", [edit]);
    const may = async (verb: string): Promise<boolean | undefined> => {
      const resourceAttributes = { verb, group: "pulumi.com", resource: "stacks", namespace };
      const kind = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview" };
      const response = await stage.send(jane, "/k8s/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
        method: "POST",
        body: JSON.stringify({ ...kind, spec: { resourceAttributes } }),
      });
      expect(response.status).toBe(201);
      return ((await response.json()) as { status?: { allowed?: boolean } }).status?.allowed;
    };
    await waitFor(async () => await may("patch"), { timeoutMs: 30_000 });
    expect(await may("delete")).toBe(false);
  });

  test("an Approval is created in the user's name only", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace } = stage;
    const rule = { apiGroups: ["auto.pulumi.com"], resources: ["approvals"], verbs: ["create", "approve"] };
    const jane = await stage.user("jane", [rule]);
    const approve = async (decidedBy: string): Promise<Response> =>
      await stage.send(jane, `/k8s/apis/auto.pulumi.com/v1alpha1/namespaces/${namespace}/approvals`, {
        method: "POST",
        body: JSON.stringify({
          apiVersion: "auto.pulumi.com/v1alpha1",
          kind: "Approval",
          metadata: { generateName: "web-1-" },
          spec: { updateName: "web-1", updateUid: "u", digest: "sha256:a", decision: "Approve", decidedBy },
        }),
      });
    const own = `system:serviceaccount:${namespace}:jane`;
    await waitFor(async () => (await approve(own)).status === 201, { timeoutMs: 30_000 });
    const forged = await approve("system:admin");
    expect(forged.status).toBeGreaterThanOrEqual(403);
    expect(((await forged.json()) as Status).kind).toBe("Status");
  });
});

describe("a page", () => {
  test("has the list, then every change, without managed fields", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace, client } = stage;
    const admin = await stage.user("jane", [viewRule]);
    await stage.stack("a");
    await stage.until(admin, `${api}/namespaces/${namespace}/stacks`, 200);
    const page = await stage.stream(admin, [stage.stacksIn(namespace)]);
    expect(page.contentType).toBe("text/event-stream; charset=utf-8");
    await page.next("synced");
    expect(page.messages.map(({ type }) => type)).toEqual(["reset", "object", "synced"]);
    await stage.stack("b");
    await stage.change("b", "1");
    await page.next("object", ({ change, object }) => change === "MODIFIED" && nameOf(object) === "b");
    await client.delete(stacks, { namespace, name: "a" });
    await page.next("object", ({ change, object }) => change === "DELETED" && nameOf(object) === "a");
    expect(page.names()).toEqual(["b"]);
    expect(JSON.stringify(page.messages)).not.toContain("managedFields");
  });

  test("that reconnects receives what it missed, and nothing twice", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace } = stage;
    const jane = await stage.user("jane", [viewRule]);
    await stage.stack("a");
    await stage.until(jane, `${api}/namespaces/${namespace}/stacks`, 200);
    const page = await stage.stream(jane, [stage.stacksIn(namespace)]);
    await page.next("synced");
    await page.close();
    await stage.stack("b");
    const again = await stage.stream(jane, [stage.stacksIn(namespace, { resourceVersion: page.version() })]);
    await again.next("object", ({ object }) => nameOf(object) === "b");
    expect(again.names()).toEqual(["b"]);
    expect(again.messages.some(({ type }) => type === "reset")).toBe(false);
  });

  test("whose version is too old receives everything again", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace } = stage;
    const jane = await stage.user("jane", [viewRule]);
    await stage.stack("a");
    await stage.until(jane, `${api}/namespaces/${namespace}/stacks`, 200);
    let expired = 1;
    stage.proxy.on(({ verb }) => (verb === "watch" && expired-- > 0 ? { status: 410, reason: "Expired" } : undefined));
    const page = await stage.stream(jane, [stage.stacksIn(namespace, { resourceVersion: "1" })]);
    await page.next("synced");
    expect(page.messages.map(({ type }) => type)).toEqual(["reset", "object", "synced"]);
    await stage.stack("b");
    await page.next("object", ({ object }) => nameOf(object) === "b");
    expect(page.names()).toEqual(["a", "b"]);
  });

  test("continues when the API server is gone for a while", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace, proxy } = stage;
    const jane = await stage.user("jane", [viewRule]);
    await stage.stack("a");
    await stage.until(jane, `${api}/namespaces/${namespace}/stacks`, 200);
    const page = await stage.stream(jane, [stage.stacksIn(namespace)]);
    await page.next("synced");
    await proxy.refuse();
    await page.next("error");
    await stage.stack("b");
    await proxy.accept();
    await page.next("object", ({ object }) => nameOf(object) === "b");
    expect(page.names()).toEqual(["a", "b"]);
  });

  test("has all objects of a long list, which is read page by page", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace, proxy } = stage;
    const jane = await stage.user("jane", [viewRule]);
    const names = Array.from({ length: limits.pageSize + 20 }, (_, at) => `stack-${String(at).padStart(4, "0")}`);
    for (let at = 0; at < names.length; at += 40) {
      await Promise.all(names.slice(at, at + 40).map(async (name) => await stage.stack(name)));
    }
    await stage.until(jane, `${api}/namespaces/${namespace}/stacks?limit=1`, 200);
    proxy.forget();
    const page = await stage.stream(jane, [stage.stacksIn(namespace)]);
    await page.next("synced");
    expect(page.names()).toEqual(names);
    expect(proxy.requests.filter(({ verb }) => verb === "list")).toHaveLength(2);
  });

  test("sees only the object that it names", async () => {
    await using stage = await ConsoleStage.set();
    const { namespace } = stage;
    const jane = await stage.user("jane", [viewRule]);
    await stage.stack("a");
    await stage.stack("b");
    await stage.until(jane, `${api}/namespaces/${namespace}/stacks`, 200);
    const page = await stage.stream(jane, [stage.stacksIn(namespace, { name: "b" })]);
    await page.next("synced");
    expect(page.names()).toEqual(["b"]);
  });
});

test("a page continues after a restart of the API server", async () => {
  const server = await startApiServer();
  const { credentials } = server;
  const console = await startConsole({
    signIn: { mode: "kubeconfig", credentials },
    port: 0,
    assets: new Map(),
  });
  try {
    const origin = `http://127.0.0.1:${console.port}`;
    const signedIn = await fetch(`${origin}/session`, {
      method: "POST",
      headers: { origin, "x-pulumi-console": "1", "content-type": "application/json" },
      body: JSON.stringify({ token: new URL(console.url).hash.replace("#token=", "") }),
    });
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
    const q = Buffer.from(JSON.stringify([{ id: "n", kind: "watch", resource: "pods" }])).toString("base64url");
    const page = new TestStream(await fetch(`${origin}/stream?q=${q}`, { headers: { cookie } }));
    await page.next("synced");
    await server.kill();
    await server.restart();
    const pod = { metadata: { name: "late", namespace: "default" }, spec: { containers: [{ name: "a", image: "a" }] } };
    await waitFor(
      async () =>
        await server.kubectl(["apply", "-f", "-"], {
          input: JSON.stringify({ apiVersion: "v1", kind: "Pod", ...pod }),
        }),
      { timeoutMs: 30_000 },
    );
    await page.next("object", ({ object }) => nameOf(object) === "late");
    expect(page.names()).toEqual(["late"]);
    await page.close();
  } finally {
    await console.stop();
    await server.stop();
  }
});
