/** A project in plain JavaScript: a compiler of TypeScript would take most of the time of its runs. */
export function javascriptProject(name: string, program: string): Readonly<Record<string, string>> {
  return {
    "Pulumi.yaml": `name: ${name}\nruntime:\n  name: nodejs\n  options:\n    typescript: false\n`,
    "package.json": JSON.stringify({ name, main: "index.js" }),
    // The SDK comes with the image; the language host wants to see a folder all the same.
    "node_modules/.keep": "",
    "index.js": program,
  };
}
