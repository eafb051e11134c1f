/** Creates, reads, exports and deletes stacks. */
import { randomBytes } from "node:crypto";

import { Refusal, type Answer, type Call } from "./http.ts";
import type { CloudUpdate } from "./updates.ts";

export class CloudStack {
  readonly id = crypto.randomUUID();
  readonly organization: string;
  readonly project: string;
  readonly name: string;
  tags: Readonly<Record<string, string>>;
  version = 0;
  /** The state as it was last sent, byte for byte: deltas have byte offsets. */
  checkpoint: Buffer = Buffer.from('{"version":3,"deployment":null}');
  readonly updates: CloudUpdate[] = [];
  /** Calls of updates that start now wait for this promise, so that a test decides how long they take. */
  stalled: Promise<void> = Promise.resolve();
  /** Encrypts the secrets in its configuration and state. */
  readonly secretKey = randomBytes(32);

  constructor(place: StackPlace, tags: Readonly<Record<string, string>>) {
    this.organization = place.organization;
    this.project = place.project;
    this.name = place.name;
    this.tags = tags;
  }

  /** The update that locks the stack. */
  get active(): CloudUpdate | undefined {
    return this.updates.find((update) => update.locksStack());
  }

  get resources(): readonly { readonly type: string; readonly urn: string }[] {
    const { deployment } = JSON.parse(this.checkpoint.toString()) as {
      deployment: { resources?: { type: string; urn: string }[] } | null;
    };
    return deployment?.resources ?? [];
  }
}

interface StackPlace {
  readonly organization: string;
  readonly project: string;
  readonly name: string;
}

const stackKey = ({ organization, project, name }: StackPlace): string => `${organization}/${project}/${name}`;

export class Stacks {
  readonly #stacks = new Map<string, CloudStack>();

  /** By its full name: organization/project/stack. */
  named(name: string): CloudStack | undefined {
    return this.#stacks.get(name);
  }

  /** The stack of a call, if the caller has access to it. */
  of(call: Call): CloudStack {
    const stack = this.#stacks.get(stackKey(stackPlace(call)));
    if (!stack) throw new Refusal(404, `Not Found: Stack '${stackKey(stackPlace(call))}' not found`);
    return stack;
  }

  async create(call: Call): Promise<Answer> {
    const { stackName, tags = {} } = await call.json<{ stackName: string; tags?: Record<string, string> }>();
    const place = { ...stackPlace(call), name: stackName };
    const key = stackKey(place);
    if (this.#stacks.has(key)) throw new Refusal(409, `Conflict: Stack '${key}' already exists`);
    this.#stacks.set(key, new CloudStack(place, tags));
    return {};
  }

  hasProject(call: Call): Answer {
    const { organization, project } = stackPlace(call);
    const known = [...this.#stacks.keys()].some((key) => key.startsWith(`${organization}/${project}/`));
    if (!known) throw new Refusal(404, "Not Found: Project not found");
    return undefined;
  }

  read(call: Call): Answer {
    const stack = this.of(call);
    const { active } = stack;
    return {
      id: stack.id,
      orgName: stack.organization,
      projectName: stack.project,
      stackName: stack.name,
      tags: stack.tags,
      version: stack.version,
      activeUpdate: active?.id ?? stack.updates.at(-1)?.id ?? "",
      ...(active && { currentOperation: { kind: active.kind, author: active.author, started: active.startedAt } }),
    };
  }

  remove(call: Call): Answer {
    const stack = this.of(call);
    const isEmpty = stack.resources.every(({ type }) => type === "pulumi:pulumi:Stack");
    if (!isEmpty && call.query.get("force") !== "true") {
      throw new Refusal(400, "Bad Request: Stack still contains resources.");
    }
    this.#stacks.delete(stackKey(stack));
    return undefined;
  }

  async setTags(call: Call): Promise<Answer> {
    this.of(call).tags = await call.json<Record<string, string>>();
    return undefined;
  }

  export(call: Call): Answer {
    const headers = { "content-type": "application/json" };
    return new Response(new Uint8Array(this.of(call).checkpoint), { headers });
  }
}

/** An organization that the caller does not belong to is reported as not found. */
function stackPlace(call: Call): StackPlace {
  const { organization = "", project = "", stack = "" } = call.params;
  // The lease of an update is sufficient.
  if (call.authorization.kind !== "update-token" && !call.identity().organizations.includes(organization)) {
    throw new Refusal(404, `Not Found: Organization '${organization}' not found`);
  }
  return { organization, project, name: stack };
}
