import { expect, test } from "bun:test";

import { seededRandom, testNamespace, testSeed, type TestNamespace } from "@pko/testkit";

import {
  podTemplateSchema,
  serviceSchema,
  strategicMerge,
} from "../../../packages/operator/src/shared/objects/strategic-merge.ts";
import type { Json, JsonMap } from "../../../packages/operator/src/shared/objects/strategic-merge.ts";
import { call } from "./raw.ts";

const testTimeoutMs = 180_000;

class Writer {
  readonly #random: () => number;
  #removes = true;

  constructor(seed: number) {
    this.#random = seededRandom(seed).next;
  }

  pick<T>(...values: readonly [T, ...T[]]): T {
    return values[Math.floor(this.#random() * values.length)] ?? values[0];
  }

  maybe(part: JsonMap): JsonMap {
    return this.#random() < 0.4 ? part : {};
  }

  some(...elements: readonly JsonMap[]): JsonMap[] {
    return elements.filter(() => this.#random() < 0.5);
  }

  /** An element of a merged list, or its removal if the original may have it. */
  element(key: string, element: JsonMap): JsonMap {
    return this.#removes && this.#random() < 0.15 ? { [key]: element[key] ?? null, $patch: "delete" } : element;
  }

  env(): JsonMap[] {
    return this.some(
      this.element("name", { name: "A", value: this.pick("1", "2", "3") }),
      this.element("name", { name: "B", value: this.pick("1", "2") }),
      this.element("name", { name: this.pick("C", "D", "E"), value: "x" }),
    );
  }

  container(name: string): JsonMap {
    // In objects that a patch adds, the API server applies only a part of a removal.
    this.#removes = name === "main";
    const container = this.#container(name);
    this.#removes = true;
    return container;
  }

  #container(name: string): JsonMap {
    return {
      name,
      image: this.pick("one", "two"),
      ...this.maybe({ env: this.env() }),
      ...this.maybe({ command: this.pick<Json>(["a"], ["a", "b"], null) }),
      ...this.maybe({ args: ["x", this.pick("y", "z")] }),
      ...this.maybe({ resources: { requests: { cpu: this.pick<Json>("100m", "1", null) } } }),
      ...this.maybe({
        ports: this.some(
          { containerPort: 80, name: this.pick("web", "http") },
          { containerPort: this.pick(81, 82), protocol: "TCP" },
        ),
      }),
      ...this.maybe({
        volumeMounts: this.some(
          this.element("mountPath", { mountPath: "/a", name: "one" }),
          this.element("mountPath", { mountPath: "/b", name: this.pick("one", "two"), readOnly: true }),
        ),
      }),
      ...this.maybe({ securityContext: this.pick<Json>({ runAsUser: 1 }, { capabilities: { drop: ["ALL"] } }, null) }),
      ...this.maybe({ envFrom: [{ configMapRef: { name: this.pick("a", "b") } }] }),
    };
  }

  template(): JsonMap {
    return {
      ...this.maybe({ metadata: { labels: this.labels(), annotations: this.labels() } }),
      spec: {
        ...this.maybe({ containers: this.some(this.container("main"), this.container(this.pick("side", "other"))) }),
        ...this.maybe({ initContainers: this.some(this.container("init"), this.container("second")) }),
        ...this.maybe({
          volumes: this.some(
            this.element("name", { name: "one", emptyDir: this.pick<Json>({}, { medium: "Memory" }) }),
            this.element("name", { name: "three", secret: { secretName: this.pick("s", "t") } }),
            { name: "two", $retainKeys: ["name", "configMap"], configMap: { name: "c" } },
          ),
        }),
        ...this.maybe({ tolerations: this.some({ key: "a", operator: "Exists" }, { key: "b", operator: "Exists" }) }),
        ...this.maybe({
          imagePullSecrets: [...this.some({ $patch: "replace" }), ...this.some({ name: "p" }, { name: "q" })],
        }),
        ...this.maybe({ hostAliases: this.some({ ip: "10.0.0.1", hostnames: [this.pick("a", "b")] }) }),
        ...this.maybe({ nodeSelector: this.pick<Json>({ a: "1" }, { b: null }, { $patch: "replace", c: "1" }, null) }),
        ...this.maybe({ serviceAccountName: this.pick<Json>("x", null) }),
        ...this.maybe({ securityContext: { runAsUser: this.pick<Json>(1, 2, null), fsGroup: 3 } }),
        ...this.maybe({ terminationGracePeriodSeconds: this.pick(1, 2) }),
        ...this.maybe({ affinity: { nodeAffinity: { $patch: this.pick("delete", "merge") } } }),
        ...this.maybe({ topologySpreadConstraints: this.some(this.spread("zone"), this.spread("host")) }),
      },
    };
  }

  spread(topologyKey: string): JsonMap {
    return { topologyKey, maxSkew: this.pick(1, 2), whenUnsatisfiable: "DoNotSchedule" };
  }

  labels(): JsonMap {
    return { ...this.maybe({ a: this.pick<Json>("1", "2", null) }), ...this.maybe({ b: "2" }), kept: "yes" };
  }
}

const base: JsonMap = {
  metadata: { labels: { a: "0", app: "x" }, annotations: { note: "n" } },
  spec: {
    containers: [
      {
        name: "main",
        image: "zero",
        env: [
          { name: "A", value: "0" },
          { name: "B", value: "0" },
        ],
        command: ["run"],
        ports: [{ containerPort: 80, name: "p" }],
        volumeMounts: [{ mountPath: "/a", name: "one" }],
        resources: { requests: { cpu: "1m", memory: "1Mi" } },
        securityContext: { runAsUser: 5, capabilities: { add: ["NET_BIND_SERVICE"] } },
      },
    ],
    initContainers: [{ name: "init", image: "zero" }],
    volumes: [
      { name: "one", emptyDir: {} },
      { name: "two", emptyDir: {} },
    ],
    imagePullSecrets: [{ name: "z" }],
    tolerations: [{ key: "z", operator: "Exists" }],
    nodeSelector: { a: "0" },
  },
};

interface Collection {
  readonly path: string;
  readonly wrap: (name: string, content: JsonMap) => JsonMap;
  readonly content: (object: Record<string, unknown>) => unknown;
}

/** The results of two dry runs: of the API server's own merge, and of writing the result of ours. */
async function compare(place: TestNamespace, collection: Collection, [original, patch]: [JsonMap, JsonMap]) {
  const { credentials } = place.server;
  const { path, wrap, content } = collection;
  const name = `t${crypto.randomUUID().slice(0, 8)}`;
  const created = await call(credentials, { method: "POST", path, body: wrap(name, original) });
  expect(created.status).toBe(201);
  const theirs = await call(credentials, {
    method: "PATCH",
    path: `${path}/${name}?dryRun=All`,
    contentType: "application/strategic-merge-patch+json",
    body: wrap(name, patch),
  });
  const complete = content(created.body) as JsonMap;
  const merged = strategicMerge(
    complete,
    patch,
    collection.path.endsWith("services") ? serviceSchema : podTemplateSchema,
  );
  const ours = await call(credentials, {
    method: "PUT",
    path: `${path}/${name}?dryRun=All`,
    body: { ...wrap(name, merged) },
  });
  return { theirs, ours, merged };
}

const firstSeed = testSeed("pod templates");

test(
  "random templates are merged as the API server merges them",
  async () => {
    await using place = await testNamespace();
    const collection: Collection = {
      path: `/api/v1/namespaces/${place.name}/podtemplates`,
      wrap: (name, template) => ({ apiVersion: "v1", kind: "PodTemplate", metadata: { name }, template }),
      content: (object) => object["template"],
    };
    const verdicts = { same: 0, refused: 0 };
    for (let seed = firstSeed; seed < firstSeed + 300; seed++) {
      const patch = new Writer(seed).template();
      const { theirs, ours } = await compare(place, collection, [base, patch]);
      const merge = `TEST_SEED=${seed}: ${JSON.stringify(patch)}`;
      if (theirs.status !== 200) {
        // In objects that a patch adds, the API server fails on directives that we apply. Dry runs validate templates anyway.
        verdicts.refused++;
        continue;
      }
      verdicts.same++;
      const got: unknown = ours.body["template"] ?? ours.body;
      expect({ merge, got }).toEqual({ merge, got: theirs.body["template"] });
    }
    expect(verdicts.same).toBeGreaterThan(200);
  },
  testTimeoutMs,
);
