/** Whether the screen is narrow, for what CSS alone cannot decide. */
import { signal } from "@preact/signals";

const narrow = matchMedia("(max-width: 720px)");
export const isNarrow = signal(narrow.matches);
narrow.addEventListener("change", ({ matches }) => (isNarrow.value = matches));
