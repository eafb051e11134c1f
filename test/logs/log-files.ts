/** What all containers of a namespace have logged on this machine, also those whose pods were deleted. */
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Followed {
  readonly namespace: string;
  readonly container: string;
}

/** A pod that exists for less than this may be missed. */
const intervalMs = 250;

/**
 * An open file can be read after the kubelet has deleted it together with the pod. To read the log from the API server until the pod is deleted
 * would take a connection and CPU time for each pod.
 */
export class LogFiles implements Disposable {
  readonly #folders: readonly string[];
  readonly #namespace: string;
  readonly #container: string;
  readonly #open = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  /** `folders` are where kubelets write the logs of pods. */
  constructor(folders: readonly string[], { namespace, container }: Followed) {
    this.#folders = folders;
    this.#namespace = namespace;
    this.#container = container;
    this.#timer = setInterval(() => this.#openNew(), intervalMs);
  }

  /** One for each start of a container. */
  read(): string[] {
    this.#openNew();
    // From the start, also the second time.
    return Array.from(this.#open.values(), (file) => withoutStamps(readFileSync(`/proc/self/fd/${file}`, "utf8")));
  }

  #openNew(): void {
    for (const folder of this.#folders) {
      const pods = namesIn(folder).filter((pod) => pod.startsWith(`${this.#namespace}_`));
      for (const pod of pods) this.#openIn(join(folder, pod, this.#container));
    }
  }

  #openIn(folder: string): void {
    for (const name of namesIn(folder)) this.#keep(join(folder, name));
  }

  #keep(path: string): void {
    if (this.#open.has(path)) return;
    const file = orIfDeleted(() => openSync(path, "r"), undefined);
    if (file !== undefined) this.#open.set(path, file);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    for (const file of this.#open.values()) closeSync(file);
  }
}

const namesIn = (folder: string): string[] => orIfDeleted(() => readdirSync(folder), []);

function orIfDeleted<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return otherwise;
    throw error;
  }
}

/** The container runtime begins each line with its time, its stream, and whether the line is complete (F) or continued (P). */
const withoutStamps = (log: string): string =>
  log.replaceAll(/^\S+ (?:stdout|stderr) ([FP]) (.*)\n/gm, (_, tag: string, text: string) =>
    tag === "F" ? `${text}\n` : text,
  );
