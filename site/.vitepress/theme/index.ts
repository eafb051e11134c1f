/** The default theme, with diagrams. */
import { useData, useRoute, type Theme } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { nextTick, onMounted, watch } from "vue";

export default {
  extends: DefaultTheme,
  setup() {
    const { isDark } = useData();
    const route = useRoute();
    const draw = async (): Promise<void> => {
      await nextTick();
      await drawDiagrams(isDark.value);
    };
    onMounted(draw);
    watch([() => route.path, isDark], draw);
  },
} satisfies Theme;

/** Loaded only by pages that have diagrams. */
async function drawDiagrams(isDark: boolean): Promise<void> {
  const diagrams = [...document.querySelectorAll<HTMLElement>("pre.mermaid")];
  if (diagrams.length === 0) return;
  const { default: mermaid } = await import("mermaid");
  mermaid.initialize({ startOnLoad: false, theme: isDark ? "dark" : "default" });
  for (const diagram of diagrams) {
    // Keep the source: a change of the theme draws it again.
    diagram.dataset["source"] ??= diagram.textContent;
    diagram.textContent = diagram.dataset["source"];
    delete diagram.dataset["processed"];
  }
  await mermaid.run({ nodes: diagrams });
}
