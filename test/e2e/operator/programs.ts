/** Pulumi programs for tests on the cluster, as the files of their repositories. */

/** YAML, which is JSON too: one output, and a resource of each name. */
export const yamlProject = (text: string, ...resources: readonly string[]): Record<string, string> => ({
  "Pulumi.yaml": JSON.stringify({
    name: "webapp",
    runtime: "yaml",
    resources: Object.fromEntries(
      resources.map((name) => [name, { type: "pulumi:index:Stash", properties: { input: name } }]),
    ),
    outputs: { text },
  }),
});

/**
 * TypeScript: files on the state volume, written, read, changed and removed as a cloud's resources would be. One with the
 * content "broken" fails; one with the content "held" is written once there is a file `release`.
 */
export const filesProject = (body: string): Record<string, string> => ({
  "Pulumi.yaml": "name: files\nruntime: nodejs\n",
  "package.json": '{ "name": "files", "main": "index.ts" }',
  // The SDK comes with the image; the language host wants to see a folder all the same.
  "node_modules/.keep": "",
  "index.ts": `
import * as pulumi from "@pulumi/pulumi";

const provider: pulumi.dynamic.ResourceProvider = {
  async create(inputs) {
    if (inputs.content === "broken") throw new Error("the disk is on fire");
    while (inputs.content === "held" && !require("node:fs").existsSync("/state/release")) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    require("node:fs").writeFileSync("/state/" + inputs.path, inputs.content);
    return { id: inputs.path, outs: { path: inputs.path, content: inputs.content } };
  },
  async read(id, props) {
    return { id, props: { ...props, content: require("node:fs").readFileSync("/state/" + id, "utf8") } };
  },
  async diff(_, olds, news) {
    return { changes: olds.content !== news.content };
  },
  async update(id, _, news) {
    require("node:fs").writeFileSync("/state/" + id, news.content);
    return { outs: { path: news.path, content: news.content } };
  },
  async delete(id) {
    require("node:fs").rmSync("/state/" + id, { force: true });
  },
};

class File extends pulumi.dynamic.Resource {
  constructor(path: string, content: string, options: pulumi.CustomResourceOptions = {}) {
    super(provider, path, { path, content }, options);
  }
}

${body}
`,
});

/**
 * One resource, which takes its time. It tells on the volume when it begins, and a moment before that whether another is
 * still at it: the one at work leaves a sign of life there all the time. The file /state/hurry ends it early.
 */
export const slowProject = (seconds: number): Record<string, string> => ({
  "Pulumi.yaml": "name: slow\nruntime: nodejs\n",
  "package.json": '{ "name": "slow", "main": "index.ts" }',
  // The SDK comes with the image; the language host wants to see a folder all the same.
  "node_modules/.keep": "",
  "index.ts": `
import * as pulumi from "@pulumi/pulumi";

const provider: pulumi.dynamic.ResourceProvider = {
  async create(inputs) {
    const fs = require("node:fs");
    const [log, sign] = ["/state/log-" + inputs.name, "/state/alive-" + inputs.name];
    const lastSign = fs.existsSync(sign) ? fs.statSync(sign).mtimeMs : 0;
    fs.appendFileSync(log, Date.now() - lastSign < 1000 ? "overlap\\n" : "begun\\n");
    if (inputs.hunger) Buffer.alloc(2 ** 31, 1);
    for (const end = Date.now() + ${seconds} * 1000; Date.now() < end && !fs.existsSync("/state/hurry"); ) {
      fs.writeFileSync(sign, "");
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return { id: "done", outs: {} };
  },
};

class Slow extends pulumi.dynamic.Resource {
  constructor(name: string, hunger: boolean) {
    super(provider, name, { name, hunger });
  }
}

new Slow(pulumi.getStack(), new pulumi.Config().getBoolean("hunger") ?? false);
`,
});
