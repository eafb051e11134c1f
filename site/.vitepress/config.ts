/** The documentation as a static site with search. Its pages are the Markdown files of the repository, unchanged. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { defineConfig, type DefaultTheme, type MarkdownRenderer } from "vitepress";

const root = resolve(import.meta.dirname, "../..");
const withoutPages = [".build", ".cluster", ".github", "packages", "hack", "test", "bench", "site"];
const repository = "https://github.com/pulumi/pulumi-kubernetes-operator";

export default defineConfig({
  title: "Pulumi Kubernetes Operator",
  description: "Deploy Pulumi programs from Kubernetes",
  srcDir: "..",
  srcExclude: ["**/node_modules/**", ...withoutPages.map((folder) => `${folder}/**`)],
  outDir: "../.build/site",
  cacheDir: "../.build/site-cache",
  cleanUrls: true,
  rewrites: (path) => path.replace(/(^|\/)README\.md$/, "$1index.md"),
  markdown: { config: configureMarkdown },
  // The pages are outside of this package.
  vite: { resolve: { alias: [{ find: /^vue(?=$|\/)/, replacement: join(root, "site/node_modules/vue") }] } },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Get started", link: "/docs/getting-started" },
      { text: "Documentation", link: "/docs/" },
      { text: "Examples", link: "/examples/" },
      { text: "Changes", link: "/CHANGELOG" },
    ],
    sidebar: sidebar(),
    socialLinks: [{ icon: "github", link: repository }],
    editLink: { pattern: `${repository}/edit/main/:path` },
  },
});

/** The sections of docs/README.md with the pages that they link to, each page once. */
function sidebar(): DefaultTheme.SidebarItem[] {
  const seen = new Set<string>();
  const sections = readFileSync(join(root, "docs/README.md"), "utf8").split(/^## /m).slice(1);
  return sections.map((section) => {
    const pages = [...section.matchAll(/\]\(([\w./-]+\.md)/g)].map(([, page = ""]) => join("docs", page));
    const items = pages.filter((page) => !seen.has(page) && seen.add(page));
    return { text: section.split("\n")[0] ?? "", collapsed: true, items: items.map(sidebarItem) };
  });
}

function sidebarItem(page: string): DefaultTheme.SidebarItem {
  const [, title = page] = /^# (.+)$/m.exec(readFileSync(join(root, page), "utf8")) ?? [];
  return { text: title.replaceAll("`", ""), link: `/${page.replace(/(README)?\.md$/, "")}` };
}

function configureMarkdown(markdown: MarkdownRenderer): void {
  linkToRepository(markdown);
  renderDiagrams(markdown);
}

/** Links to files that are not pages, such as manifests and sources, lead to the repository. */
function linkToRepository(markdown: MarkdownRenderer): void {
  const render = markdown.renderer.rules.link_open;
  markdown.renderer.rules.link_open = (tokens, index, options, env, self) => {
    const link = tokens[index];
    const [target = ""] = link?.attrGet("href")?.split("#") ?? [];
    if (target !== "" && !/^[a-z]+:/.test(target)) {
      const path = relative(root, resolve(dirname(env.realPath ?? env.path), target));
      const isPage = path.endsWith(".md") && !withoutPages.some((folder) => path.startsWith(`${folder}/`));
      if (!isPage && existsSync(join(root, path))) link?.attrSet("href", `${repository}/tree/main/${path}`);
    }
    return render?.(tokens, index, options, env, self) ?? self.renderToken(tokens, index, options);
  };
}

/** Diagrams are drawn in the browser; see theme/index.ts. */
function renderDiagrams(markdown: MarkdownRenderer): void {
  const render = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (tokens, index, options, env, self) => {
    const { info = "", content = "" } = tokens[index] ?? {};
    if (info.trim() === "mermaid") return `<pre class="mermaid" v-pre>${markdown.utils.escapeHtml(content)}</pre>`;
    return render?.(tokens, index, options, env, self) ?? "";
  };
}
