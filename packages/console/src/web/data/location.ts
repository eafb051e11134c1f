/** The address of the view. */
import { computed, signal } from "@preact/signals";

import { parseRoute } from "../lib/routes.ts";

const current = signal({ path: location.pathname, query: location.search });

export const route = computed(() => parseRoute(current.value.path));
export const query = computed(() => new URLSearchParams(current.value.query));

function read(): void {
  current.value = { path: location.pathname, query: location.search };
}

export function navigate(address: string): void {
  history.pushState(null, "", address);
  read();
}

/** For what a user types: no entry in the history for each letter. */
export function replaceQuery(search: string): void {
  history.replaceState(null, "", location.pathname + search);
  read();
}

/** Links are links; those to other views of the console do not reload the page. */
function follow(event: MouseEvent): void {
  if (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  ) {
    return;
  }
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
  if (link.pathname.startsWith("/assets/") || link.hash !== "") return;
  event.preventDefault();
  navigate(link.pathname + link.search);
  scrollTo(0, 0);
}

export function startNavigation(): void {
  addEventListener("popstate", read);
  document.addEventListener("click", follow);
}
