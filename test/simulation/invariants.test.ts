import { leaseName, stackKind, updateKind } from "@pko/api";
import { builtin } from "@pko/kube";
import { expect, test } from "bun:test";

import type { StartedRun } from "./agent.ts";
import { servedKind } from "./api/kinds.ts";
import { ApiFrontend, type ApiRequest } from "./api/server.ts";
import { Storage, type ServedKind, type Stored } from "./api/storage.ts";
import { Backend, type CliProcess } from "./backend.ts";
import { Invariants } from "./invariants.ts";
import { operatorNamespace } from "./operator-process.ts";
import { namespace, type Place } from "./place.ts";

const stacks = servedKind(stackKind);
const updates = servedKind(updateKind);
const secrets = servedKind(builtin.secrets);
const leases = servedKind(builtin.leases);

/** One cluster without operators, in which a test writes what operators would. */
class Scene {
  #uids = 0;
  readonly storage = new Storage({ now: () => Date.UTC(2030, 0, 1), newUid: () => `uid-${++this.#uids}` });
  readonly place = { cluster: { name: "east", storage: this.storage } } as unknown as Place;
  readonly backend: Backend = new Backend({
    onViolation: (what) => this.checked.violate(what),
    onWrite: (write) => this.checked.onWrite(write),
  });
  readonly checked = new Invariants({
    seed: 1,
    time: { elapsed: 0 },
    backend: this.backend,
    head: "",
    places: [this.place],
    stacks: () => this.storage.list(stacks) as never,
    tell: () => undefined,
  });

  constructor() {
    this.storage.subscribe((change) => this.checked.onChange(this.place, change));
  }

  create(kind: ServedKind, object: { readonly metadata: object; readonly [field: string]: unknown }): Stored {
    return this.storage.create({ kind, namespace }, object, { manager: "test" });
  }

  /** Its run has the returned ID. */
  update(name = "web-1"): string {
    return this.create(updates, { metadata: { name }, spec: {} }).metadata.uid ?? "";
  }

  complete(name: string, isFailed = false): void {
    const conditions = [
      { type: "Complete", status: "True" },
      { type: "Failed", status: isFailed ? "True" : "False" },
    ];
    const options = { manager: "test", subresource: "status" };
    this.storage.mergePatch({ kind: updates, namespace, name }, { status: { conditions } }, options);
  }

  stack(destroyOnFinalize: boolean): void {
    this.create(stacks, { metadata: { name: "web", finalizers: ["test"] }, spec: { stack: "web", destroyOnFinalize } });
  }

  deleteStack(): void {
    this.storage.delete({ kind: stacks, namespace, name: "web" }, {});
  }

  removeFinalizer(): void {
    const patch = { metadata: { finalizers: null } };
    this.storage.mergePatch({ kind: stacks, namespace, name: "web" }, patch, { manager: "test" });
  }

  start(runId: string, { operation = { kind: "up" }, stack = "web" }: Partial<StartOptions> = {}): void {
    const request = { runId, stack, operation } as StartedRun["request"];
    this.checked.onStart(this.place, { where: "east team/web-workspace-0", request, stack, content: "1" });
  }

  deploy(runId: string, content: string | undefined = "1"): void {
    this.backend.write({ where: "east team/web-workspace-0", stack: "web", operation: "up", runId, content });
  }

  request(request: Partial<ApiRequest>, options: { readonly isLate?: boolean } = {}): void {
    const complete = { method: "GET", path: "/api/v1/pods", headers: {}, user: "operator", ...request };
    const reply = { status: 200, body: {} };
    this.checked.onRequest(this.place, { request: complete, reply, sender: "operator-1", ...options });
  }

  leader(name: string): void {
    const lease = { metadata: { name: leaseName }, spec: { holderIdentity: `${name}_1` } };
    this.storage.create({ kind: leases, namespace: operatorNamespace }, lease, { manager: "test" });
  }
}

interface StartOptions {
  readonly operation: object;
  readonly stack: string;
}

const processOf = (runId: string): CliProcess => ({
  hostname: "web-workspace-0",
  pid: 20,
  startedAt: "",
  runId,
  where: "east",
  isAlive: true,
});

const write = { method: "PATCH", path: "/apis/pulumi.com/v1/namespaces/team/stacks/web/status" };
const applying = (digest: string): StartOptions => ({
  operation: { kind: "up", applyPlan: { digest, content: "" } },
  stack: "approved-vault",
});

/** What happens, and what the violation contains; undefined if there is none. */
const cases: readonly (readonly [what: string, happens: (scene: Scene) => void, violation: string | undefined])[] = [
  ["a run that starts while its Update exists", (scene) => scene.start(scene.update()), undefined],
  ["a run that starts without its Update", (scene) => scene.start("unknown"), "its Update does not exist"],
  [
    "a run that starts after its Update has ended",
    (scene) => {
      const runId = scene.update();
      scene.complete("web-1");
      scene.start(runId);
    },
    "has ended",
  ],
  [
    "a run that starts twice",
    (scene) => {
      const runId = scene.update();
      scene.start(runId);
      scene.start(runId);
    },
    "started twice",
  ],
  [
    "a run that starts twice in a cluster that was restored",
    (scene) => {
      const runId = scene.update();
      scene.start(runId);
      scene.checked.restored(scene.place);
      scene.start(runId);
    },
    undefined,
  ],
  [
    "a run that starts twice while another cluster was restored",
    (scene) => {
      const runId = scene.update();
      scene.start(runId);
      scene.checked.restored({ cluster: { name: "west", storage: scene.storage } } as unknown as Place);
      scene.start(runId);
    },
    "started twice",
  ],
  [
    "two processes that write to a stack at the same time",
    ({ backend }) => {
      backend.startWriting("web", processOf("1"));
      backend.startWriting("web", processOf("2"));
    },
    "two writers of web",
  ],
  [
    "a process that writes after another one was killed",
    ({ backend }) => {
      const killed = processOf("1");
      backend.startWriting("web", killed);
      killed.isAlive = false;
      backend.startWriting("web", processOf("2"));
    },
    undefined,
  ],
  [
    "the same content that is deployed twice",
    (scene) => {
      scene.deploy(scene.update("web-1"));
      scene.deploy(scene.update("web-2"));
    },
    "ran twice for the same content",
  ],
  [
    "different content",
    (scene) => {
      scene.deploy(scene.update("web-1"), "1");
      scene.deploy(scene.update("web-2"), "2");
    },
    undefined,
  ],
  [
    "a repetition of a run that was lost",
    (scene) => {
      const runId = scene.update("web-1");
      scene.deploy(runId);
      scene.checked.runsLost([runId]);
      scene.complete("web-1", true);
      scene.deploy(scene.update("web-2"));
    },
    undefined,
  ],
  [
    "a repetition of a run whose Update has succeeded, although its pod was lost then",
    (scene) => {
      const runId = scene.update("web-1");
      scene.deploy(runId);
      scene.complete("web-1");
      scene.checked.runsLost([runId]);
      scene.deploy(scene.update("web-2"));
    },
    "ran twice for the same content",
  ],
  [
    "a repetition after another run was lost",
    (scene) => {
      scene.deploy(scene.update("web-1"));
      scene.checked.runsLost(["another"]);
      scene.deploy(scene.update("web-2"));
    },
    "ran twice for the same content",
  ],
  ["an apply without an approval", (scene) => scene.start(scene.update(), applying("plan")), "without an approval"],
  [
    "an apply of an approved plan",
    (scene) => {
      scene.checked.approve("plan");
      scene.start(scene.update(), applying("plan"));
    },
    undefined,
  ],
  [
    "a plan that is applied twice",
    (scene) => {
      scene.checked.approve("plan");
      scene.start(scene.update("vault-1"), applying("plan"));
      scene.start(scene.update("vault-2"), applying("plan"));
    },
    "apply the same plan",
  ],
  [
    "a destroy of a Stack that is not being deleted",
    (scene) => {
      scene.stack(true);
      scene.start(scene.update(), { operation: { kind: "destroy" } });
    },
    "nobody requested it",
  ],
  [
    "a destroy of a Stack that is deleted without destroyOnFinalize",
    (scene) => {
      scene.stack(false);
      scene.deleteStack();
      scene.start(scene.update(), { operation: { kind: "destroy" } });
    },
    "nobody requested it",
  ],
  [
    "a destroy that was requested",
    (scene) => {
      scene.stack(true);
      scene.deleteStack();
      scene.start(scene.update(), { operation: { kind: "destroy" } });
    },
    undefined,
  ],
  [
    "a Stack that is deleted before its destroy",
    (scene) => {
      scene.stack(true);
      scene.deploy(scene.update());
      scene.deleteStack();
      scene.removeFinalizer();
    },
    "was deleted before web was destroyed",
  ],
  [
    "an object of another owner that is changed",
    (scene) => {
      scene.checked.protect(scene.create(secrets, { metadata: { name: "web-outputs" } }));
      const path = { kind: secrets, namespace, name: "web-outputs" };
      scene.storage.mergePatch(path, { data: { key: "dmFsdWU=" } }, { manager: "test" });
    },
    "of another owner was changed",
  ],
  [
    "an object of another owner that is deleted",
    (scene) => {
      scene.checked.protect(scene.create(secrets, { metadata: { name: "web-outputs" } }));
      scene.storage.delete({ kind: secrets, namespace, name: "web-outputs" }, {});
    },
    "of another owner was deleted",
  ],
  [
    "a write of a replica that does not lead",
    (scene) => {
      scene.leader("operator-2");
      scene.request(write);
    },
    "writes although operator-2 leads",
  ],
  [
    "a write of the leader",
    (scene) => {
      scene.leader("operator-1");
      scene.request(write);
    },
    undefined,
  ],
  [
    "a write that arrives late",
    (scene) => {
      scene.leader("operator-2");
      scene.request(write, { isLate: true });
    },
    undefined,
  ],
  [
    "too many requests",
    (scene) => {
      for (let count = 0; count < 2000; count++) scene.request({});
    },
    "requests in a minute",
  ],
  [
    "fewer requests",
    (scene) => {
      for (let count = 0; count < 1999; count++) scene.request({});
    },
    undefined,
  ],
  ["a secret in the log", ({ checked }) => checked.onText("the log", "canary-password-1-x"), "contains a secret"],
  [
    "a secret in a status",
    (scene) => {
      scene.update();
      const options = { manager: "test", subresource: "status" };
      const status = { message: Buffer.from("canary-output-1-x").toString("base64") };
      scene.storage.mergePatch({ kind: updates, namespace, name: "web-1" }, { status }, options);
    },
    "contains a secret",
  ],
  [
    "a secret in a Secret",
    (scene) => void scene.create(secrets, { metadata: { name: "web" }, stringData: { key: "canary-output-1-x" } }),
    undefined,
  ],
];

for (const [what, happens, violation] of cases) {
  test(`${what} is ${violation === undefined ? "no" : "a"} violation`, () => {
    const scene = new Scene();
    happens(scene);
    const { violations } = scene.checked;
    expect(violations).toHaveLength(violation === undefined ? 0 : 1);
    expect(violations.join("\n")).toContain(violation ?? "");
  });
}

for (const [what, message, count] of [
  ["a secret in an event is a violation", "the password is canary-password-1-x", 1],
  ["an event without a secret is none", "the password is wrong", 0],
] as const) {
  test(what, () => {
    const scene = new Scene();
    const request: ApiRequest = {
      method: "POST",
      path: "/api/v1/namespaces/team/events?fieldManager=operator",
      body: JSON.stringify({ metadata: { name: "web.1", namespace }, message }),
      headers: {},
      user: "operator",
    };
    expect(new ApiFrontend(scene.storage).handle(request).status).toBe(201);
    scene.request(request);
    expect(scene.checked.violations).toHaveLength(count);
  });
}

test("resources that a run leaves after its Stack was deleted are reported", () => {
  const scene = new Scene();
  scene.stack(true);
  scene.deleteStack();
  scene.removeFinalizer();
  expect(scene.checked.abandoned()).toEqual([]);
  scene.deploy("late");
  expect(scene.checked.abandoned()).toEqual(["web is deployed, and its Stack does not exist"]);
  expect(scene.checked.violations).toEqual([]);
});
