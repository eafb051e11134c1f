/** The colors: those of the system, unless the user has chosen. The choice is all that the page stores in the browser. */
import { effect, signal } from "@preact/signals";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const key = "theme";

export const theme = signal<Theme>("system");

/** A browser can refuse its storage. The choice is then valid until the page is closed. */
function withStorage<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(localStorage);
  } catch {
    return undefined;
  }
}

export function chooseTheme(text: string): void {
  theme.value = themes.find((each) => each === text) ?? "system";
  const { value } = theme;
  withStorage((storage) => (value === "system" ? storage.removeItem(key) : storage.setItem(key, value)));
}

export function startTheme(): void {
  chooseTheme(withStorage((storage) => storage.getItem(key)) ?? "system");
  effect(() => void (document.documentElement.dataset["theme"] = theme.value));
}
