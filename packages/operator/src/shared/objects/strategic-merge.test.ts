import { describe, expect, test } from "bun:test";

import { podTemplateSchema, serviceSchema, strategicMerge, type JsonMap } from "./strategic-merge.ts";

const original: JsonMap = {
  metadata: { labels: { a: "1" }, finalizers: ["x"] },
  spec: {
    serviceAccountName: "default",
    containers: [
      {
        name: "pulumi",
        image: "pulumi/pulumi",
        command: ["a", "b"],
        env: [
          { name: "A", value: "1" },
          { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        ],
        volumeMounts: [{ name: "share", mountPath: "/share" }],
        ports: [{ containerPort: 50051, name: "grpc" }],
        resources: { requests: { cpu: "100m", memory: "64Mi" } },
      },
    ],
    tolerations: [{ key: "a", operator: "Exists" }],
    volumes: [{ name: "share", emptyDir: {} }],
    imagePullSecrets: [{ name: "one" }],
  },
};

const [pulumi = {}] = (original["spec"] as { containers: JsonMap[] }).containers;

/** `gives` is the part of the result that a case checks. */
const cases: Readonly<Record<string, { patch: JsonMap; gives: object }>> = {
  "an empty patch changes nothing": { patch: {}, gives: original },
  "labels are added": {
    patch: { metadata: { labels: { b: "2" } } },
    gives: { metadata: { labels: { a: "1", b: "2" } } },
  },
  "null removes a label": { patch: { metadata: { labels: { a: null } } }, gives: { metadata: { labels: {} } } },
  "finalizers are added, once each": {
    patch: { metadata: { finalizers: ["x", "y"] } },
    gives: { metadata: { finalizers: ["x", "y"] } },
  },
  "a plain field is replaced": {
    patch: { spec: { serviceAccountName: "deployer" } },
    gives: { spec: { serviceAccountName: "deployer" } },
  },
  "a container is merged by its name": {
    patch: { spec: { containers: [{ name: "pulumi", image: "mine" }] } },
    gives: { spec: { containers: [{ ...pulumi, image: "mine" }] } },
  },
  "a container of another name comes before those that the patch does not name": {
    patch: { spec: { containers: [{ name: "proxy", image: "p" }] } },
    gives: { spec: { containers: [{ name: "proxy", image: "p" }, pulumi] } },
  },
  "containers have the order of the patch": {
    patch: { spec: { containers: [{ name: "pulumi" }, { name: "proxy", image: "p" }] } },
    gives: { spec: { containers: [pulumi, { name: "proxy", image: "p" }] } },
  },
  "$setElementOrder changes the order": {
    patch: {
      spec: {
        containers: [{ name: "proxy", image: "p" }],
        "$setElementOrder/containers": [{ name: "pulumi" }, { name: "proxy" }],
      },
    },
    gives: { spec: { containers: [pulumi, { name: "proxy", image: "p" }] } },
  },
  "a variable is merged by its name, and may keep both kinds of value": {
    patch: { spec: { containers: [{ name: "pulumi", env: [{ name: "B", value: "2" }] }] } },
    gives: {
      spec: {
        containers: [
          {
            ...pulumi,
            env: [
              { name: "A", value: "1" },
              { name: "B", value: "2", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
            ],
          },
        ],
      },
    },
  },
  "a variable is removed by its name": {
    patch: { spec: { containers: [{ name: "pulumi", env: [{ name: "B", $patch: "delete" }] }] } },
    gives: { spec: { containers: [{ ...pulumi, env: [{ name: "A", value: "1" }] }] } },
  },
  "a mount is merged by its path, not its name": {
    patch: { spec: { containers: [{ name: "pulumi", volumeMounts: [{ name: "other", mountPath: "/share" }] }] } },
    gives: { spec: { containers: [{ ...pulumi, volumeMounts: [{ name: "other", mountPath: "/share" }] }] } },
  },
  "a port is merged by its number": {
    patch: { spec: { containers: [{ name: "pulumi", ports: [{ containerPort: 50051, name: "rpc" }] }] } },
    gives: { spec: { containers: [{ ...pulumi, ports: [{ containerPort: 50051, name: "rpc" }] }] } },
  },
  "a command is replaced as a whole": {
    patch: { spec: { containers: [{ name: "pulumi", command: ["c"] }] } },
    gives: { spec: { containers: [{ ...pulumi, command: ["c"] }] } },
  },
  "requests are merged": {
    patch: { spec: { containers: [{ name: "pulumi", resources: { requests: { cpu: "1" } } }] } },
    gives: { spec: { containers: [{ ...pulumi, resources: { requests: { cpu: "1", memory: "64Mi" } } }] } },
  },
  "tolerations are replaced as a whole": {
    patch: { spec: { tolerations: [{ key: "b" }] } },
    gives: { spec: { tolerations: [{ key: "b" }] } },
  },
  "a volume is merged by its name: both sources stay": {
    patch: { spec: { volumes: [{ name: "share", persistentVolumeClaim: { claimName: "c" } }] } },
    gives: { spec: { volumes: [{ name: "share", emptyDir: {}, persistentVolumeClaim: { claimName: "c" } }] } },
  },
  "a volume keeps what $retainKeys names": {
    patch: {
      spec: {
        volumes: [
          { name: "share", persistentVolumeClaim: { claimName: "c" }, $retainKeys: ["name", "persistentVolumeClaim"] },
        ],
      },
    },
    gives: { spec: { volumes: [{ name: "share", persistentVolumeClaim: { claimName: "c" } }] } },
  },
  "a list with a replace directive is replaced by that of the patch": {
    patch: { spec: { imagePullSecrets: [{ $patch: "replace" }, { name: "two" }] } },
    gives: { spec: { imagePullSecrets: [{ name: "two" }] } },
  },
  "a map with a replace directive is replaced by that of the patch": {
    patch: { metadata: { labels: { $patch: "replace", b: "2" } } },
    gives: { metadata: { labels: { b: "2" } } },
  },
  "a map with a delete directive is emptied": {
    patch: { metadata: { labels: { $patch: "delete" } } },
    gives: { metadata: { labels: {} } },
  },
  "values are removed from a list of plain values": {
    patch: { metadata: { "$deleteFromPrimitiveList/finalizers": ["x"] } },
    gives: { metadata: { finalizers: [] } },
  },
  "null in a field that does not exist has no effect": {
    patch: { spec: { nodeSelector: { a: null }, hostname: null } },
    gives: { spec: { nodeSelector: {} } },
  },
};

describe("a pod template is merged as Kubernetes merges it", () => {
  for (const [name, { patch, gives }] of Object.entries(cases)) {
    test(name, () => {
      const before = structuredClone(original);
      expect(strategicMerge(original, patch, podTemplateSchema)).toMatchObject(gives);
      expect(original).toEqual(before);
    });
  }

  test("an element without its key and an unknown directive are rejected", () => {
    const merge = (patch: JsonMap) => () => strategicMerge(original, patch, podTemplateSchema);
    expect(merge({ spec: { containers: [{ image: "x" }] } })).toThrow(
      "spec.containers: every element must have the field name",
    );
    expect(merge({ spec: { volumes: ["x"] } })).toThrow("spec.volumes: every element must be an object");
    expect(merge({ spec: { $patch: "purge" } })).toThrow("spec: $patch");
  });
});

test("a Service's ports are merged by their number", () => {
  const service: JsonMap = { spec: { clusterIP: "None", ports: [{ port: 1, name: "a" }] } };
  const patch: JsonMap = { spec: { ports: [{ port: 1, name: "b" }, { port: 2 }] } };
  expect(strategicMerge(service, patch, serviceSchema)).toEqual({
    spec: { clusterIP: "None", ports: [{ port: 1, name: "b" }, { port: 2 }] },
  });
});
