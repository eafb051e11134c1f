/**
 * The cluster's network: a separate namespace, connected to the machine by one veth pair. What the cluster adds to
 * iptables, links and routes stays in that namespace and disappears with it.
 *
 *   machine ── pko0 10.245.0.1 ═══ 10.245.0.2 uplink ── cluster: cni0 10.244.0.1 (node, API server, DNS) ── pods
 *                                                            └── tap0 (slirp4netns) ── the internet
 */
import { readFileSync } from "node:fs";

import { run } from "./shell.ts";

export const network = {
  pods: "10.244.0.0/16",
  firstPod: "10.244.1.1",
  node: "10.244.0.1",
  secondNode: "10.244.0.2",
  secondFirstPod: "10.244.128.1",
  /** Fixed, because a bridge otherwise takes the lowest MAC address of its ports, and pods would cache the previous one. */
  nodeHardware: "02:00:0a:f4:00:01",
  services: "10.96.0.0/16",
  apiService: "10.96.0.1",
  machine: "10.245.0.1",
  uplink: "10.245.0.2",
  link: "pko0",
  namespace: "/run/netns/pko",
  resolver: "10.0.2.3",
  apiServerUrl: "https://10.244.0.1:6443",
} as const;

/** Prefixes a command so that it runs in the cluster's network namespace. Mounts stay shared. */
export function inClusterNetwork(command: readonly string[]): string[] {
  return ["nsenter", `--net=${network.namespace}`, "--", ...command];
}

export async function createNetwork(owner: string): Promise<void> {
  await run(["ip", "netns", "add", "pko"]);
  await run(["ip", "link", "add", network.link, "type", "veth", "peer", "name", "uplink", "netns", "pko"]);
  await run(["ip", "link", "set", network.link, "alias", owner]);
  await inside(["ip", "link", "set", "lo", "up"]);
  await inside(["ip", "addr", "add", `${network.uplink}/30`, "dev", "uplink"]);
  await inside(["ip", "link", "set", "uplink", "up"]);
  await inside(["ip", "link", "add", "cni0", "address", network.nodeHardware, "type", "bridge"]);
  await inside(["ip", "addr", "add", `${network.node}/16`, "dev", "cni0"]);
  await inside(["ip", "addr", "add", `${network.secondNode}/32`, "dev", "cni0"]);
  await inside(["ip", "link", "set", "cni0", "up"]);
  await inside(["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
  await run(["ip", "addr", "add", `${network.machine}/30`, "dev", network.link]);
  await run(["ip", "link", "set", network.link, "up"]);
  for (const range of [network.pods, network.services]) await run(["ip", "route", "add", range, "via", network.uplink]);
}

/** Who created the network link; "" if its creator died before setting its alias. */
export function linkOwner(): string | undefined {
  try {
    return readFileSync(`/sys/class/net/${network.link}/ifalias`, "utf8").trim();
  } catch {
    return undefined;
  }
}

/** The kernel also does this, but only after the last connection of a dead program has timed out. */
export async function deleteLink(): Promise<void> {
  try {
    await run(["ip", "link", "delete", network.link]);
  } catch (error) {
    if (linkOwner() !== undefined) throw error;
  }
}

export async function isDnsReady(): Promise<boolean> {
  return (await fetch(`http://${network.node}:8181/ready`)).ok;
}

async function inside(command: readonly string[]): Promise<void> {
  await run(inClusterNetwork(command));
}
