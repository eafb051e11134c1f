/** How many pull requests are previewed. */
import type { Stack } from "@pko/api";
import type { Registry, Store } from "@pko/kube";

export function exposePreviews(registry: Registry, stacks: Pick<Store<Stack>, "list">): void {
  const previews = registry.gauge({
    name: "pull_request_previews",
    help: "Previews of pull requests by state: Pending, Running, Succeeded, Failed or Blocked.",
    labels: ["state"],
  });
  registry.onCollect(() => {
    previews.clear();
    const counts = new Map<string, number>();
    for (const { status } of stacks.list()) {
      for (const { state } of status?.pullRequests ?? []) counts.set(state, (counts.get(state) ?? 0) + 1);
    }
    for (const [state, count] of counts) previews.set({ state }, count);
  });
}
