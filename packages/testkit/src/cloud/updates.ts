/** Updates: created, started with a lease that is renewed, and ended by their CLI, by a cancellation or by a timeout. */
import { applyDelta, untypedDeployment } from "./checkpoints.ts";
import { Refusal, type Answer, type Call } from "./http.ts";
import type { CloudStack, Stacks } from "./stacks.ts";

type Result = "not-started" | "in-progress" | "succeeded" | "failed" | "cancelled";

interface Program {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly metadata?: { readonly message?: string; readonly environment?: Readonly<Record<string, string>> };
}

/** Like Pulumi Cloud: a lease that is not renewed for this long expires. */
const leaseMs = 300_000;

export class CloudUpdate {
  readonly id = crypto.randomUUID();
  readonly kind: string;
  readonly author: string;
  readonly program: Program;
  version = 0;
  result: Result = "not-started";
  /** In seconds, as in the API. */
  startedAt = 0;
  endedAt = 0;
  lease = "";
  #leaseEndsAt = 0;
  /** How each checkpoint was sent. */
  readonly checkpoints: ("checkpoint" | "verbatim" | "delta")[] = [];
  events = 0;
  stalled: Promise<void> = Promise.resolve();

  constructor(about: { kind: string; author: string; program: Program }) {
    this.kind = about.kind;
    this.author = about.author;
    this.program = about.program;
  }

  /** What the CLI reports about its environment. */
  get environment(): Readonly<Record<string, string>> {
    return this.program.metadata?.environment ?? {};
  }

  /** A preview does not lock the stack. */
  locksStack(): boolean {
    return this.kind !== "preview" && this.isAlive();
  }

  isAlive(): boolean {
    return this.result === "in-progress" && this.#leaseEndsAt > Date.now();
  }

  start(version: number): void {
    this.version = version;
    this.result = "in-progress";
    this.startedAt = seconds();
    this.renew();
  }

  renew(): void {
    this.lease = crypto.randomUUID();
    this.#leaseEndsAt = Date.now() + leaseMs;
  }

  end(result: Result): void {
    this.result = result;
    this.endedAt = seconds();
  }
}

const seconds = (): number => Math.floor(Date.now() / 1000);

export class Updates {
  readonly #stacks: Stacks;

  constructor(stacks: Stacks) {
    this.#stacks = stacks;
  }

  async create(call: Call, kind: string): Promise<Answer> {
    const stack = this.#stacks.of(call);
    const update = new CloudUpdate({ kind, author: call.identity().login, program: await call.json<Program>() });
    stack.updates.push(update);
    return { updateID: update.id };
  }

  async start(call: Call): Promise<Answer> {
    const stack = this.#stacks.of(call);
    const update = findUpdate(stack, call);
    const { tags } = await call.json<{ tags?: Record<string, string> }>();
    if (update.kind !== "preview" && stack.active) {
      throw new Refusal(409, "Conflict: Another update is currently in progress.");
    }
    if (tags) stack.tags = tags;
    startUpdate(stack, update);
    return { version: update.version, token: update.lease, tokenExpiration: seconds() + leaseMs / 1000 };
  }

  async renew(call: Call): Promise<Answer> {
    const { update } = await this.#leased(call);
    update.renew();
    return { token: update.lease, tokenExpiration: seconds() + leaseMs / 1000 };
  }

  async patchCheckpoint(call: Call): Promise<Answer> {
    const { stack, update } = await this.#leased(call);
    const { version, features, deployment } = await call.json<{
      version: number;
      features?: string[];
      deployment: unknown;
    }>();
    stack.checkpoint = Buffer.from(JSON.stringify({ version, ...(features && { features }), deployment }));
    update.checkpoints.push("checkpoint");
    return undefined;
  }

  async patchVerbatim(call: Call): Promise<Answer> {
    const { stack, update } = await this.#leased(call);
    stack.checkpoint = untypedDeployment(await call.text());
    update.checkpoints.push("verbatim");
    return undefined;
  }

  async patchDelta(call: Call): Promise<Answer> {
    const { stack, update } = await this.#leased(call);
    stack.checkpoint = applyDelta(stack.checkpoint, await call.json());
    update.checkpoints.push("delta");
    return undefined;
  }

  async recordEvents(call: Call): Promise<Answer> {
    const { update } = await this.#leased(call);
    update.events += (await call.json<{ events: unknown[] }>()).events.length;
    return undefined;
  }

  async complete(call: Call): Promise<Answer> {
    const { update } = await this.#leased(call);
    update.end((await call.json<{ status: Result }>()).status);
    return undefined;
  }

  /** Revokes the lease: the next call of its CLI fails. */
  cancel(call: Call): Answer {
    const update = findUpdate(this.#stacks.of(call), call);
    if (!update.isAlive()) throw new Refusal(409, "Conflict: The update has already completed");
    update.end("cancelled");
    return undefined;
  }

  status(call: Call): Answer {
    const { result } = findUpdate(this.#stacks.of(call), call);
    return { status: result === "in-progress" ? "running" : result, events: [] };
  }

  /** Newest first, without previews. */
  history(call: Call): Answer {
    const stack = this.#stacks.of(call);
    const size = Number(call.query.get("pageSize") ?? 1000);
    const first = (Number(call.query.get("page") ?? 1) - 1) * size;
    const updates = stack.updates.filter(({ kind, result }) => kind !== "preview" && result !== "not-started");
    const page = updates.toReversed().slice(first, first + size);
    const isService = call.query.get("output-type") === "service";
    return { updates: page.map((update) => (isService ? serviceInfo(stack, update) : info(update))) };
  }

  latest(call: Call): Answer {
    const stack = this.#stacks.of(call);
    const update = stack.updates.findLast(({ kind, result }) => kind !== "preview" && result !== "not-started");
    if (!update) throw new Refusal(404, "Not Found: The stack has no updates");
    return serviceInfo(stack, update);
  }

  /** Importing a state counts as an update. */
  async import(call: Call): Promise<Answer> {
    const stack = this.#stacks.of(call);
    const update = new CloudUpdate({ kind: "import", author: call.identity().login, program: {} });
    if (stack.active) throw new Refusal(409, "Conflict: Another update is currently in progress.");
    stack.updates.push(update);
    startUpdate(stack, update);
    stack.checkpoint = Buffer.from(await call.text());
    update.end("succeeded");
    return { updateId: update.id };
  }

  async #leased(call: Call): Promise<{ stack: CloudStack; update: CloudUpdate }> {
    const stack = this.#stacks.of(call);
    const update = findUpdate(stack, call);
    await update.stalled;
    if (!update.isAlive() || call.authorization.value !== update.lease) {
      throw new Refusal(403, "Forbidden: The update's lease has expired");
    }
    return { stack, update };
  }
}

/** Starts an update, which locks the stack unless it is a preview. */
export function startUpdate(stack: CloudStack, update: CloudUpdate): void {
  if (update.kind !== "preview") stack.version += 1;
  update.stalled = stack.stalled;
  update.start(stack.version);
}

function findUpdate(stack: CloudStack, { params }: Call): CloudUpdate {
  const update = stack.updates.find(({ id }) => id === params["update"]);
  if (!update) throw new Refusal(404, "Not Found: Update not found");
  return update;
}

function info(update: CloudUpdate): object {
  const { kind, startedAt, endedAt, version, result, program } = update;
  return {
    kind,
    startTime: startedAt,
    endTime: endedAt,
    version,
    message: program.metadata?.message ?? "",
    environment: update.environment,
    config: program.config ?? {},
    result: result === "cancelled" ? "failed" : result,
  };
}

function serviceInfo(stack: CloudStack, update: CloudUpdate): object {
  return {
    info: info(update),
    updateID: update.id,
    version: update.version,
    latestVersion: stack.version,
    requestedBy: { githubLogin: update.author, name: update.author },
  };
}
