/** What people do: create, change and delete Stacks, push commits, and decide about plans. */
import {
  approvalKind,
  reconcileRequestAnnotation,
  stackOutputsSecretOf,
  statefulSetNameOf,
  workspaceKind,
  workspaceNameOf,
  type Approval,
  type ApprovalRequest,
  type Stack,
} from "@pko/api";
import { builtin } from "@pko/kube";

import { servedKind } from "./api/kinds.ts";
import { StatusError, type ServedKind, type Stored } from "./api/storage.ts";
import { namespace, stacks, type Place } from "./place.ts";
import type { World } from "./world.ts";

const approvals = servedKind(approvalKind);
const secrets = servedKind(builtin.secrets);
const services = servedKind(builtin.services);
const statefulSets = servedKind(builtin.statefulSets);
const workspaces = servedKind(workspaceKind);

const names = ["web", "api", "vault"] as const;
type Name = (typeof names)[number];

/** Of the Pulumi stack. */
const stackNameOf = (name: Name): string => (name === "vault" ? `approved-${name}` : name);

interface ForeignObject {
  readonly kind: ServedKind;
  readonly metadata: { readonly name: string };
  readonly [field: string]: unknown;
}

/** With the names of all objects that the operator creates for a Stack and its Workspace. */
function foreignObjects(name: Name): ForeignObject[] {
  const stringData = { text: "mine" };
  const common = { name: statefulSetNameOf(workspaceNameOf(name)) };
  const labels = { app: "mine" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "app", image: "app:1" }] } };
  return [
    { kind: secrets, metadata: { name: stackOutputsSecretOf(name) }, stringData },
    { kind: secrets, metadata: { name: `${common.name}-tls` }, stringData },
    { kind: services, metadata: common, spec: { clusterIP: "None", selector: labels } },
    { kind: statefulSets, metadata: common, spec: { replicas: 0, selector: { matchLabels: labels }, template } },
    { kind: workspaces, metadata: { name: workspaceNameOf(name) }, spec: {} },
  ];
}

export class Users {
  readonly #world: World;
  /** Whether the stack's resources are destroyed with the Stack, by name. */
  readonly #destroyed = new Map<Name, boolean>();
  readonly #reconsidered = new Set<string>();
  #occupied: { readonly place: Place; readonly objects: readonly Stored[] } | undefined;
  /** As users want it, by name. */
  readonly #config = new Map<Name, object>();
  #isPatient = false;

  constructor(world: World) {
    this.#world = world;
    const { users, places } = world;
    for (const name of names) this.#destroyed.set(name, places.length === 1 && users.next() < 0.6);
    for (const place of places) this.#prepare(place);
    const count = 1 + users.below(names.length);
    // Two clusters that share a bucket have the same Stacks.
    const used = names.toSorted(() => users.next() - 0.5).slice(0, count);
    for (const name of used) for (const place of places) this.#create(place, name);
    if (users.next() < 0.3)
      this.#occupy(users.pick(places as [Place, ...Place[]]), users.pick(used as [Name, ...Name[]]));
    this.#decideSoon();
  }

  act(): void {
    const { users, places } = this.#world;
    const place = users.pick(places as [Place, ...Place[]]);
    const name = users.pick(names);
    const isShared = places.length > 1;
    const stack = this.#world.stack(place, name);
    const chance = users.next();
    if (chance < 0.3) return this.#world.push();
    if (!stack) return isShared ? undefined : this.#create(place, name);
    if (stack.metadata.deletionTimestamp !== undefined) return;
    if (chance < 0.6) return this.#configure(name);
    if (chance < 0.7) return this.#request(place, name);
    if (chance < 0.8) return this.#suspend(place, stack);
    if (!isShared) this.#delete(place, name);
  }

  /** What people do after an incident: nothing stays suspended, missing or different between clusters. */
  cleanUp(): void {
    this.#isPatient = true;
    this.#vacate();
    for (const place of this.#world.places) {
      for (const stack of this.#world.stacks(place)) if (stack.spec?.suspend) this.#suspend(place, stack);
      if (this.#world.invariants.wasRestored) this.#recoverFromRestore(place);
    }
  }

  /** The statuses are older than what is deployed, and one cluster may have lost a change that the other has. */
  #recoverFromRestore(place: Place): void {
    for (const { metadata } of this.#world.stacks(place)) {
      const name = metadata.name as Name;
      const config = this.#config.get(name);
      if (config) this.#patch(place, name, { spec: { config } });
      this.#request(place, name);
    }
  }

  #prepare({ cluster }: Place): void {
    const stringData = { password: this.#world.invariants.secrets.password };
    cluster.storage.create(
      { kind: secrets, namespace },
      { metadata: { name: "credentials" }, stringData },
      { manager: "user" },
    );
  }

  #create(place: Place, name: Name): void {
    const isApproved = name === "vault";
    const literal = (value: string) => ({ type: "Literal", literal: { value } });
    const spec = {
      stack: stackNameOf(name),
      projectRepo: "https://git.example.com/shop.git",
      branch: "main",
      destroyOnFinalize: this.#destroyed.get(name) ?? false,
      envRefs: {
        PULUMI_BACKEND_URL: literal("s3://bucket"),
        PULUMI_CONFIG_PASSPHRASE: { type: "Secret", secret: { name: "credentials", key: "password" } },
      },
      ...(isApproved && { approval: { required: "Always" } }),
      ...(name === "api" && this.#world.stack(place, "web") && { prerequisites: [{ name: "web" }] }),
    };
    this.#tell(place, `creates Stack ${name}`);
    this.#write(() =>
      place.cluster.storage.create({ kind: stacks, namespace }, { metadata: { name }, spec }, { manager: "user" }),
    );
  }

  /** In all clusters, so that they do not deploy different things to one stack in turns. */
  #configure(name: Name): void {
    const config = { "shop:size": String(Math.round(this.#world.time.elapsed)) };
    this.#config.set(name, config);
    for (const place of this.#world.places) {
      this.#tell(place, `changes the configuration of Stack ${name}`);
      this.#patch(place, name, { spec: { config } });
    }
  }

  #request(place: Place, name: Name): void {
    this.#tell(place, `requests a reconciliation of Stack ${name}`);
    const annotations = { [reconcileRequestAnnotation]: String(this.#world.time.elapsed) };
    this.#patch(place, name, { metadata: { annotations } });
  }

  #suspend(place: Place, { metadata, spec }: Stack): void {
    const isSuspended = spec?.suspend ?? false;
    this.#tell(place, `${isSuspended ? "resumes" : "suspends"} Stack ${metadata.name}`);
    this.#patch(place, metadata.name as Name, { spec: { suspend: !isSuspended } });
  }

  #delete(place: Place, name: Name): void {
    this.#tell(place, `deletes Stack ${name}`);
    this.#write(() =>
      place.cluster.storage.delete({ kind: stacks, namespace, name }, { propagationPolicy: "Background" }),
    );
  }

  /** Others use names that the operator needs. */
  #occupy(place: Place, name: Name): void {
    const { users } = this.#world;
    this.#tell(place, `creates objects with names that the operator needs for Stack ${name}`);
    const all = foreignObjects(name);
    const one = users.below(all.length);
    const wanted = all.filter((_, index) => index === one || users.next() < 0.2);
    const objects = wanted.map(({ kind, ...object }) =>
      place.cluster.storage.create({ kind, namespace }, object, { manager: "user" }),
    );
    for (const object of objects) this.#world.invariants.protect(object);
    this.#occupied = { place, objects };
  }

  /** As the message of the Stack recommends it. */
  #vacate(): void {
    if (!this.#occupied) return;
    const { place, objects } = this.#occupied;
    this.#tell(place, "deletes the objects with names that the operator needs");
    for (const { apiVersion, kind, metadata } of objects) {
      this.#world.invariants.unprotect(metadata.uid ?? "");
      const served = servedKind({ apiVersion, plural: `${kind.toLowerCase()}s` });
      this.#write(() =>
        place.cluster.storage.delete({ kind: served, namespace, name: metadata.name ?? "" }, { uid: metadata.uid }),
      );
    }
  }

  /** An approver looks at the plans from time to time. */
  #decideSoon(): void {
    const { users, places } = this.#world;
    this.#world.clock.after(2000 + users.next() * (this.#isPatient ? 5000 : 90_000), () => {
      for (const place of places) {
        for (const stack of this.#world.stacks(place)) this.#review(place, stack);
        const isMissing = this.#world.stack(place, "api") && !this.#world.stack(place, "web");
        if (this.#isPatient && isMissing) this.#create(place, "web");
      }
      this.#decideSoon();
    });
  }

  #review(place: Place, { metadata, status }: Stack): void {
    const { approval } = status ?? {};
    if (!approval) return;
    this.#decide(place, approval);
    // Whoever has rejected a plan requests another one.
    if (!this.#isPatient || approval.state !== "Rejected" || this.#reconsidered.has(approval.updateUid)) return;
    this.#reconsidered.add(approval.updateUid);
    this.#request(place, metadata.name as Name);
  }

  #decide(place: Place, { state, updateName, updateUid, digest, appliedBy }: ApprovalRequest): void {
    const isDecided = place.cluster.storage
      .list(approvals)
      .some((each) => (each as unknown as Approval).spec.updateUid === updateUid);
    if (state !== "Pending" || appliedBy !== undefined || isDecided) return;
    const { users } = this.#world;
    const decision = this.#isPatient || users.next() < 0.75 ? "Approve" : "Reject";
    this.#tell(place, `decides about the plan of ${updateName}: ${decision}`);
    if (decision === "Approve") this.#world.invariants.approve(digest);
    const metadata = { name: `${updateName}-${this.#world.newUid()}` };
    const spec = { updateName, updateUid, digest, decision, decidedBy: "anna" };
    this.#write(() =>
      place.cluster.storage.create({ kind: approvals, namespace }, { metadata, spec }, { manager: "anna" }),
    );
  }

  #patch({ cluster }: Place, name: Name, patch: object): void {
    this.#write(() => cluster.storage.mergePatch({ kind: stacks, namespace, name }, { ...patch }, { manager: "user" }));
  }

  /** An API server that is down rejects it, and so does one that no longer has the object. */
  #write(write: () => unknown): void {
    try {
      write();
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      this.#world.tell(`user: rejected: ${error.message}`);
    }
  }

  #tell({ cluster }: Place, text: string): void {
    this.#world.tell(`user: ${text} (${cluster.name})`);
  }
}
