/** Git servers that accept connections and never respond must not delay the Stacks of other namespaces. */
import { expect, test } from "bun:test";
import { createServer, type AddressInfo, type Socket } from "node:net";

import { manualClock, metricsRegistry, type Key, type ManualClock } from "@pko/kube";
import { gitLister, gitPoller, type GitFollow, type GitPoller } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { gitServer } from "./git-server.ts";

const manyAddresses = Array.from({ length: 150 }, (_, index) => `127.0.1.${index + 1}`);
const policy = { allowHttp: true, allowedAddresses: ["127.0.0.1", ...manyAddresses] };

class Tarpit implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  /** Requests that wait for a response. */
  waiting = 0;
  readonly #server = createServer((socket) => {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => {
      this.waiting++;
      socket.once("close", () => this.waiting--);
    });
  });

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => void this.#server.listen(0, "0.0.0.0", resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => void this.#server.close(resolve));
  }
}

const follow = (url: string, request = "1"): GitFollow => ({
  url,
  credentials: { kind: "none" },
  ref: { kind: "branch", name: "main" },
  everyMs: 60_000,
  request,
});

interface Polling {
  readonly clock: ManualClock;
  readonly poller: GitPoller;
  readonly woken: Key[];
  readonly metric: (line: string) => number;
}

function polling(): Polling {
  const clock = manualClock();
  const woken: Key[] = [];
  const metrics = metricsRegistry();
  const lister = gitLister({ policy, inherited: {} }, clock);
  const poller = gitPoller({ lister, wake: (key) => woken.push(key), clock, random: () => 0, metrics });
  const metric = (line: string): number => Number(metrics.expose().split(`\n${line} `)[1]?.split("\n")[0]);
  return { clock, poller, woken, metric };
}

const hosts: readonly (readonly [string, readonly string[], number])[] = [
  ["one unresponsive server", ["127.0.0.1"], 16],
  ["many unresponsive servers", manyAddresses, 24],
];
test.each(hosts)(
  "150 Stacks at %s do not delay a Stack of another namespace",
  async (_, names, inFlight) => {
    await using tarpit = new Tarpit();
    using server = gitServer();
    const commit = server.commit();
    const port = await tarpit.listen();
    const { clock, poller, metric } = polling();
    for (let index = 0; index < 150; index++) {
      const url = `http://${names[index % names.length] ?? ""}:${port}/repo-${index}.git`;
      poller.follow(`noisy/s${index}`, follow(url), { kind: "pending" });
    }
    await clock.advance(100);
    await waitFor(() => tarpit.waiting === inFlight, { what: "the tarpit to hold all polls that may run" });
    expect([metric('git_polls_in_flight{transport="http"}'), metric("git_polls_waiting")]).toEqual([
      inFlight,
      150 - inFlight,
    ]);

    poller.follow("quiet/web", follow(server.url), { kind: "pending" });
    await clock.advance(50);
    await waitFor(() => poller.latest("quiet/web", follow(server.url)).kind !== "pending");
    expect(poller.latest("quiet/web", follow(server.url))).toEqual({ kind: "found", commit });
    // The tarpit still holds its requests: nothing had to end first.
    expect(tarpit.waiting).toBe(inFlight);
    poller.stop();
  },
  180_000,
);

test("all Stacks of an unresponsive server have a result after two rounds, and then few polls test it", async () => {
  await using tarpit = new Tarpit();
  const port = await tarpit.listen();
  const { clock, poller, woken, metric } = polling();
  const url = (index: number): string => `http://127.0.0.1:${port}/repo-${index}.git`;
  for (let index = 0; index < 150; index++) poller.follow(`noisy/s${index}`, follow(url(index)), { kind: "pending" });
  await clock.advance(100);
  await waitFor(() => tarpit.waiting === 16);
  await clock.advance(20_000);
  expect(woken).toHaveLength(16);
  await waitFor(() => tarpit.waiting === 2, { what: "two polls to test the server" });
  await clock.advance(20_000);
  expect(new Set(woken).size).toBe(150);
  expect(poller.latest("noisy/s149", follow(url(149)))).toEqual({
    kind: "failed",
    problem: "unreachable",
    message: "the repository did not respond in time",
  });
  await waitFor(() => tarpit.waiting === 0);

  // While the server rests, a request by a user is polled immediately.
  poller.follow("noisy/s7", follow(url(7), "2"), { kind: "pending" });
  await clock.advance(100);
  await waitFor(() => tarpit.waiting === 1, { what: "the requested poll" });
  expect(metric("git_polls_waiting")).toBe(0);
  poller.stop();
}, 180_000);
