/**
 * The cluster's network: a namespace of its own, joined to the machine by one cable. What the cluster adds to
 * iptables, links and routes stays in that namespace and is gone with it.
 *
 *   machine ── pko0 10.245.0.1 ═══ 10.245.0.2 uplink ── cluster: cni0 10.244.0.1 (node, API server, DNS) ── pods
 *                                                            └── tap0 (slirp4netns) ── the outside
 */
import { readFileSync } from "node:fs";

import { run } from "./shell.ts";

export const network = {
  pods: "10.244.0.0/16",
  firstPod: "10.244.1.1",
  node: "10.244.0.1",
  secondNode: "10.244.0.2",
  secondFirstPod: "10.244.128.1",
  /** Left to itself, the bridge would take the lowest of its pods' addresses, and pods would send to the one before. */
  nodeHardware: "02:00:0a:f4:00:01",
  services: "10.96.0.0/16",
  apiService: "10.96.0.1",
  machine: "10.245.0.1",
  uplink: "10.245.0.2",
  cable: "pko0",
  namespace: "/run/netns/pko",
  resolver: "10.0.2.3",
  apiServerUrl: "https://10.244.0.1:6443",
} as const;

/** Prefixes a command so that it runs in the cluster's network. Only that namespace changes: mounts stay shared. */
export function inClusterNetwork(command: readonly string[]): string[] {
  return ["nsenter", `--net=${network.namespace}`, "--", ...command];
}

export async function layNetwork(owner: string): Promise<void> {
  await run(["ip", "netns", "add", "pko"]);
  await run(["ip", "link", "add", network.cable, "type", "veth", "peer", "name", "uplink", "netns", "pko"]);
  await run(["ip", "link", "set", network.cable, "alias", owner]);
  await inside(["ip", "link", "set", "lo", "up"]);
  await inside(["ip", "addr", "add", `${network.uplink}/30`, "dev", "uplink"]);
  await inside(["ip", "link", "set", "uplink", "up"]);
  await inside(["ip", "link", "add", "cni0", "address", network.nodeHardware, "type", "bridge"]);
  await inside(["ip", "addr", "add", `${network.node}/16`, "dev", "cni0"]);
  await inside(["ip", "addr", "add", `${network.secondNode}/32`, "dev", "cni0"]);
  await inside(["ip", "link", "set", "cni0", "up"]);
  await inside(["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
  await run(["ip", "addr", "add", `${network.machine}/30`, "dev", network.cable]);
  await run(["ip", "link", "set", network.cable, "up"]);
  for (const range of [network.pods, network.services]) await run(["ip", "route", "add", range, "via", network.uplink]);
}

/** Who laid the cable that is there; "" for whoever died while doing so. */
export function cableOwner(): string | undefined {
  try {
    return readFileSync(`/sys/class/net/${network.cable}/ifalias`, "utf8").trim();
  } catch {
    return undefined;
  }
}

/** The kernel does so as well, but not before the last connection of a dead program has timed out. */
export async function cutCable(): Promise<void> {
  try {
    await run(["ip", "link", "delete", network.cable]);
  } catch (error) {
    if (cableOwner() !== undefined) throw error;
  }
}

export async function dnsAnswers(): Promise<boolean> {
  return (await fetch(`http://${network.node}:8181/ready`)).ok;
}

async function inside(command: readonly string[]): Promise<void> {
  await run(inClusterNetwork(command));
}
