/** A limit for each address of a client, so that one client cannot use up what others may send. */
import { tokenBucket, type Clock, type TokenBucket } from "@pko/kube";

interface AddressLimitOptions {
  readonly burst: number;
  readonly refillMs: number;
  readonly clock: Clock;
}

const maxAddresses = 10_000;

export class AddressLimit {
  readonly #options: AddressLimitOptions;
  /** The address that was seen last is the last one. */
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(options: AddressLimitOptions) {
    this.#options = options;
  }

  /** False if the address must wait. */
  take(address: string): boolean {
    const key = networkOf(address);
    const bucket = this.#buckets.get(key) ?? tokenBucket(this.#options);
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    const [oldest] = this.#buckets.keys();
    if (this.#buckets.size > maxAddresses && oldest !== undefined) this.#buckets.delete(oldest);
    return bucket.take();
  }
}

/** Whoever has one IPv6 address usually has all of its /64 network. */
function networkOf(address: string): string {
  if (!address.includes(":") || address.includes(".")) return address;
  const [head = "", tail] = address.split("::", 2);
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const [before, after] = [groups(head), groups(tail ?? "")];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  return [...before, ...Array.from({ length: zeros }, () => "0"), ...after].slice(0, 4).join(":");
}
