/** The actions of each phase, and the condition for its end. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";

import { ignoreWindowsUntilAnnotation, reconcileRequestAnnotation, type StackSpec } from "@pko/api";
import { timestamp } from "@pko/kube";
import { stacks } from "@pko/operator";

import type { Guarded } from "./audit.ts";
import { decisionPhases, startDecision, type DecisionOptions, type DecisionPhase } from "./decisions.ts";
import { Shop, type ShopOptions } from "./shop.ts";

/** The phases of each kind of lifecycle, in order. */
export const stories = {
  /** A Stack, and another one that depends on it. */
  updates: ["create", "new commit", "spec change", "resync", "prerequisite", "destroy"],
  /** A Stack whose changes all need an approval. */
  control: ["approval", "timeout", "suspend", "closed window", "new plan", "approved destroy"],
  /** A Stack whose destructive changes need an approval. */
  decisions: decisionPhases,
} as const;
export type Story = keyof typeof stories;
export type Phase = (typeof stories)[Story][number];
export const storyNames = Object.keys(stories) as Story[];
export const phases: readonly Phase[] = [...stories.updates, ...stories.control, ...stories.decisions];

/** The stacks that need approvals. */
export const guarded: Guarded = { vault: "Always", gate: "OnDestructiveChanges" };

const isDecision = (phase: Phase): phase is DecisionPhase => (decisionPhases as readonly Phase[]).includes(phase);

/** Opens for a minute at New Year. */
const closedWindow = { schedule: "0 0 1 1 *", durationSeconds: 60 };

interface ScriptOptions extends ShopOptions, Pick<DecisionOptions, "approver" | "cli"> {}

export class Script {
  readonly #options: ScriptOptions;
  readonly #shop: Shop;

  constructor(options: ScriptOptions) {
    this.#options = options;
    this.#shop = new Shop(options);
  }

  async stop(): Promise<void> {
    await this.#shop.stop();
  }

  /** Starts a phase and returns the condition for its end. */
  async start(phase: Phase): Promise<() => boolean> {
    const shop = this.#shop;
    if (isDecision(phase)) return await startDecision({ ...this.#options, shop }, phase);
    switch (phase) {
      case "create": {
        const commit = shop.commit("one");
        await shop.apply("base", {});
        // Follows a missing branch of the same repository: a reconciliation request for it makes the operator poll the repository.
        await shop.apply("scout", { branch: "nowhere" });
        return () => shop.isReady("base", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "new commit": {
        const commit = shop.commit("two");
        const body = { metadata: { annotations: { [reconcileRequestAnnotation]: "poll" } } };
        await shop.client.patch(stacks, shop.ref("scout"), { patch: { type: "merge", body } });
        return () => shop.isReady("base", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "spec change": {
        const resync = { continueResyncOnCommitMatch: true, resyncFrequencySeconds: 3600, refresh: true };
        await shop.apply("base", { ...resync, config: { "shop:size": "3" } });
        return () => shop.isReady("base", ({ generation }) => generation === 2);
      }
      case "resync": {
        const previous = await shop.rewind("base", 2 * 3_600_000);
        return () => shop.isReady("base", ({ name }) => name !== previous);
      }
      case "prerequisite": {
        const previous = await shop.rewind("base", 45 * 60_000);
        await shop.apply("web", {
          destroyOnFinalize: true,
          prerequisites: [{ name: "base", requirement: { succeededWithinDuration: "30m" } }],
        });
        return () => shop.isReady("web") && shop.isReady("base", ({ name }) => name !== previous);
      }
      case "destroy":
        await shop.client.delete(stacks, shop.ref("web"));
        return () => !shop.hasTraces("web") && shop.isReady("base");
      case "approval": {
        const commit = await this.#applyVault("one");
        return () => shop.isReady("vault", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "timeout":
        execFileSync("mkfifo", [this.#pipe]);
        // Long enough for the CLI to start the preview on a busy machine.
        await this.#applyVault("hung", { updateTimeoutSeconds: 10, maxFailures: 1 });
        return () => shop.hasReason("vault", "RetriesExhausted");
      case "suspend":
        await this.#applyVault("two", { suspend: true });
        return () => shop.hasReason("vault", "Suspended");
      case "closed window":
        await this.#applyVault("three", { updateWindows: [closedWindow] });
        return () => shop.hasReason("vault", "OutsideUpdateWindow");
      case "new plan": {
        const annotations = { [ignoreWindowsUntilAnnotation]: timestamp(Date.now() + 24 * 3_600_000) };
        const patch = { type: "merge", body: { metadata: { annotations } } } as const;
        await shop.client.patch(stacks, shop.ref("vault"), { patch });
        const commit = shop.lastCommit;
        return () => shop.isReady("vault", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "approved destroy":
        await shop.client.delete(stacks, shop.ref("vault"));
        return () => !shop.hasTraces("vault");
    }
  }

  /** Returns the commit of the changed program. */
  async #applyVault(text: "one" | "two" | "three" | "hung", spec: Partial<StackSpec> = {}): Promise<string> {
    const variables = text === "hung" ? { slow: { "fn::readFile": this.#pipe } } : {};
    const commit = this.#shop.commit(text, { kept: text === "hung" ? "${slow}" : text, variables });
    await this.#shop.apply("vault", { commit, destroyOnFinalize: true, approval: { required: "Always" }, ...spec });
    return commit;
  }

  /** A program that reads this pipe waits for a writer, and there is none. */
  get #pipe(): string {
    return join(this.#options.folder, "pipe");
  }
}
