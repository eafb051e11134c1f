/** The resources of a stack after a run, as far as the run's events show them. */
import type { RecordedResource, ResourceEvent, RunEvent } from "@pko/records";

/** What a finished step means for the stack: the resource exists now, existed before and after, or exists no longer. */
type Meaning = "created" | "kept" | "deleted" | "replaced" | "none";

export class StackResources {
  readonly #resources = new Map<string, RecordedResource>();
  /** Deleted before their replacements are created. */
  readonly #deleted = new Set<string>();
  readonly #created = new Set<string>();
  readonly #isPreview: boolean;

  /** A preview changes nothing: what it would create does not exist, and what it would delete does. */
  constructor({ isPreview }: { readonly isPreview: boolean }) {
    this.#isPreview = isPreview;
  }

  add(event: RunEvent): void {
    if (event.kind !== "resource" || event.phase === "started") return;
    const meaning = event.phase === "failed" ? failedMeaning(event.op) : meaningOf(event.op);
    if (this.#isPreview) this.#preview(event, meaning);
    else this.#change(event, meaning);
  }

  list(): RecordedResource[] {
    return [...this.#resources.values()];
  }

  #preview(event: ResourceEvent, meaning: Meaning): void {
    if (meaning === "kept" || meaning === "deleted" || meaning === "replaced") this.#set(event);
  }

  #change(event: ResourceEvent, meaning: Meaning): void {
    const { urn } = event;
    switch (meaning) {
      case "created":
        this.#created.add(urn);
        this.#set(event);
        break;
      case "kept":
        if (!this.#deleted.has(urn)) this.#set(event);
        break;
      case "replaced":
        // By default the replacement is created first.
        if (!this.#created.has(urn)) this.#remove(urn);
        break;
      case "deleted":
        this.#remove(urn);
        break;
      case "none":
    }
  }

  #remove(urn: string): void {
    this.#deleted.add(urn);
    this.#resources.delete(urn);
  }

  #set({ urn, parent, provider, id }: ResourceEvent): void {
    this.#deleted.delete(urn);
    this.#resources.set(urn, {
      urn,
      ...(parent !== undefined && { parent }),
      ...(provider !== undefined && { provider }),
      ...(id !== undefined && { id }),
    });
  }
}

/** The engine's names of steps. */
function meaningOf(op: string): Meaning {
  switch (op) {
    case "create":
    case "import":
    case "create-replacement":
    case "import-replacement":
    case "read-replacement":
      return "created";
    case "same":
    case "update":
    case "refresh":
    case "read":
      return "kept";
    case "delete":
    case "read-discard":
      return "deleted";
    case "delete-replaced":
    case "discard-replaced":
      return "replaced";
    default:
      // `replace` stands for two other steps.
      return "none";
  }
}

function failedMeaning(op: string): Meaning {
  switch (op) {
    case "create":
    case "import":
    case "read":
      return "none";
    default:
      return "kept";
  }
}
