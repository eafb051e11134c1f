/**
 * Which version of the protocol is used with each workspace's agent. The agent's `info` decides it once for each pod and
 * restart: the pod that replaces it during an upgrade or a rollback may have an agent of another version.
 */
import { refKey } from "@pko/kube";
import type { WorkspaceRef } from "@pko/rpc";
import type { Agreement } from "@pko/rpc/client";

import type { AgentPod } from "./agents.ts";

interface KnownVersion {
  readonly podUid: string;
  readonly restarts: number;
  /** Filled in by the first successful call to that agent. */
  readonly agreement: Agreement;
}

export class Agreements {
  readonly #known = new Map<string, KnownVersion>();

  of({ workspace, uid: podUid, restarts }: AgentPod): Agreement {
    const key = refKey(workspace);
    const known = this.#known.get(key);
    if (known?.podUid === podUid && known.restarts >= restarts) return known.agreement;
    const agreement: Agreement = {};
    this.#known.set(key, { podUid, restarts, agreement });
    return agreement;
  }

  forget(workspace: WorkspaceRef): void {
    this.#known.delete(refKey(workspace));
  }
}
