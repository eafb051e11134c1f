/** Pulumi programs that tests run on the cluster, as the files of a repository. */

/** A YAML program with one output and one resource per name. */
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

/** In plain JavaScript, because compiling TypeScript would take most of the time of a run. */
export const javascriptProject = (name: string, program: string): Record<string, string> => ({
  "Pulumi.yaml": `name: ${name}\nruntime:\n  name: nodejs\n  options:\n    typescript: false\n`,
  "package.json": JSON.stringify({ name, main: "index.js" }),
  // The image contains the SDK, but the language host requires this folder.
  "node_modules/.keep": "",
  "index.js": program,
});

/**
 * Resources that are files on the state volume. A file with the content "broken" fails; a file with the content
 * "held" is created once the file `release` exists.
 */
export const filesProject = (body: string): Record<string, string> =>
  javascriptProject(
    "files",
    `
const pulumi = require("@pulumi/pulumi");

const provider = {
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
  constructor(path, content, options = {}) {
    super(provider, path, { path, content }, options);
  }
}

${body}
`,
  );

/**
 * One slow resource. It appends "started" to a log on the state volume, or "overlap" if another run is still writing its
 * heartbeat file. The file /state/hurry ends it early. Without that, the first run of a stack takes `seconds`, and others take
 * `laterSeconds`.
 */
export const slowProject = (seconds: number, laterSeconds = seconds): Record<string, string> =>
  javascriptProject(
    "slow",
    `
const pulumi = require("@pulumi/pulumi");

const provider = {
  async create(inputs) {
    const fs = require("node:fs");
    const [log, heartbeat] = ["/state/log-" + inputs.name, "/state/alive-" + inputs.name];
    const lastHeartbeat = fs.existsSync(heartbeat) ? fs.statSync(heartbeat).mtimeMs : 0;
    const seconds = fs.existsSync(log) ? ${laterSeconds} : ${seconds};
    fs.appendFileSync(log, Date.now() - lastHeartbeat < 1000 ? "overlap\\n" : "started\\n");
    if (inputs.hunger) Buffer.alloc(2 ** 31, 1);
    for (const end = Date.now() + seconds * 1000; Date.now() < end && !fs.existsSync("/state/hurry"); ) {
      fs.writeFileSync(heartbeat, "");
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return { id: "done", outs: {} };
  },
};

class Slow extends pulumi.dynamic.Resource {
  constructor(name, hunger) {
    super(provider, name, { name, hunger });
  }
}

new Slow(pulumi.getStack(), new pulumi.Config().getBoolean("hunger") ?? false);
`,
  );

/** A ConfigMap, which the provider manages with the service account of the pod. */
export const configMapProject = (namespace: string): Record<string, string> =>
  javascriptProject(
    "settings",
    `
const pulumi = require("@pulumi/pulumi");

const call = (method, name, body) =>
  new Promise((resolve, reject) => {
    const fs = require("node:fs");
    const account = (file) => fs.readFileSync("/var/run/secrets/kubernetes.io/serviceaccount/" + file, "utf8");
    const path = "/api/v1/namespaces/${namespace}/configmaps" + (name ? "/" + name : "");
    const headers = { authorization: "Bearer " + account("token"), "content-type": "application/json" };
    const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
    const request = require("node:https").request({ host, port, path, method, headers, ca: account("ca.crt") }, (response) => {
      let text = "";
      response.on("data", (part) => (text += part));
      response.on("end", () => {
        if (response.statusCode === 404) resolve(undefined);
        else if (response.statusCode < 300) resolve(JSON.parse(text));
        else reject(new Error(text));
      });
    });
    request.on("error", reject);
    request.end(body && JSON.stringify(body));
  });

const configMap = ({ name, data }) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });

const provider = {
  async create(inputs) {
    await call("POST", "", configMap(inputs));
    return { id: inputs.name, outs: inputs };
  },
  async read(id, props) {
    const found = await call("GET", id);
    return found ? { id, props: { ...props, data: found.data ?? {} } } : { id: "", props: {} };
  },
  async diff(_, olds, news) {
    return { changes: JSON.stringify(olds.data) !== JSON.stringify(news.data) };
  },
  async update(id, _, news) {
    await call("PUT", id, configMap(news));
    return { outs: news };
  },
  async delete(id) {
    await call("DELETE", id);
  },
};

class ConfigMap extends pulumi.dynamic.Resource {
  constructor(name, data) {
    super(provider, name, { name, data }, undefined, "demo", "ConfigMap");
  }
}

new ConfigMap("settings", { mode: "fast", size: "3" });
`,
  );
