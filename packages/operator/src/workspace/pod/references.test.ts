import { describe, expect, test } from "bun:test";

import type { Container, PodSpec } from "kubernetes-types/core/v1";

import { ephemeralBackend } from "./file-backend.ts";
import { hashReferences, missingReferences, referencesOf, type Reading } from "./references.ts";
import { podSpecOf } from "../testing/views.ts";

const secret = (name: string, data: Record<string, string>, uid = `uid-${name}`): Reading => ({
  kind: "Secret",
  name,
  found: { uid, data },
});
const configMap = (name: string, data: Record<string, string>): Reading => ({
  kind: "ConfigMap",
  name,
  found: { uid: `uid-${name}`, data },
});

const spec: PodSpec = {
  initContainers: [{ name: "init", env: [{ name: "I", valueFrom: { secretKeyRef: { name: "init", key: "i" } } }] }],
  containers: [
    {
      name: "pulumi",
      env: [
        { name: "A", valueFrom: { secretKeyRef: { name: "a", key: "x" } } },
        { name: "B", valueFrom: { configMapKeyRef: { name: "b", key: "y", optional: true } } },
        { name: "C", value: "c" },
      ],
      envFrom: [{ secretRef: { name: "all" } }, { configMapRef: { name: "settings", optional: true } }],
    },
  ],
  volumes: [
    { name: "s", secret: { secretName: "files" } },
    { name: "m", configMap: { name: "some", items: [{ key: "k", path: "p" }] } },
    {
      name: "p",
      projected: {
        sources: [
          { secret: { name: "inner" } },
          { configMap: { name: "inner" } },
          { serviceAccountToken: { path: "t" } },
        ],
      },
    },
    { name: "agent-tls", secret: { secretName: "web-workspace-tls" } },
    { name: "e", emptyDir: {} },
  ],
};

describe("references", () => {
  test("are found in every part of a pod, except for our own certificate", () => {
    const found = referencesOf(spec).map(({ kind, name, keys, optional }) => [kind, name, keys ?? "all", optional]);
    expect(found).toEqual([
      ["Secret", "init", ["i"], false],
      ["Secret", "all", "all", false],
      ["ConfigMap", "settings", "all", true],
      ["Secret", "a", ["x"], false],
      ["ConfigMap", "b", ["y"], true],
      ["Secret", "files", "all", false],
      ["ConfigMap", "some", ["k"], false],
      ["Secret", "inner", "all", false],
      ["ConfigMap", "inner", "all", false],
    ]);
  });

  test("that are missing are reported with their reader, except for optional ones", () => {
    const readings = [
      secret("init", { i: "1" }),
      secret("all", {}),
      secret("a", { z: "" }),
      configMap("some", { k: "" }),
    ];
    expect(missingReferences(referencesOf(spec), readings)).toEqual([
      "the Secret a has no key x, which the variable A of the container pulumi needs",
      "there is no Secret files, which the volume s needs",
      "there is no Secret inner, which the volume p needs",
      "there is no ConfigMap inner, which the volume p needs",
    ]);
  });

  const base = [secret("a", { x: "1", other: "1" }), secret("all", { k: "1" })];
  const hash = (readings: Reading[]): string => hashReferences(referencesOf(spec), readings);
  const changes: Readonly<Record<string, { readings: Reading[]; rolls: boolean }>> = {
    "a changed value that is read": {
      readings: [secret("a", { x: "2", other: "1" }), secret("all", { k: "1" })],
      rolls: true,
    },
    "a changed value that is not read": {
      readings: [secret("a", { x: "1", other: "2" }), secret("all", { k: "1" })],
      rolls: false,
    },
    "a new key, if all are read": {
      readings: [secret("a", { x: "1" }), secret("all", { k: "1", l: "" })],
      rolls: true,
    },
    "a deleted object": { readings: [secret("all", { k: "1" })], rolls: true },
    "an object that was deleted and created again": {
      readings: [secret("a", { x: "1" }, "other"), secret("all", { k: "1" })],
      rolls: true,
    },
    "another order": { readings: base.toReversed(), rolls: false },
  };
  for (const [name, { readings, rolls }] of Object.entries(changes)) {
    test(`${name} ${rolls ? "replaces" : "does not replace"} the pod`, () =>
      expect(hash(readings) !== hash(base)).toBe(rolls));
  }
});

describe("a file backend", () => {
  const url = (value: string): object => ({ env: [{ name: "PULUMI_BACKEND_URL", value }] });
  const keeping = (mountPath: string, volume: object, readOnly = false): object => ({
    podTemplate: {
      spec: {
        containers: [{ name: "pulumi", volumeMounts: [{ name: "v", mountPath, readOnly }] }],
        volumes: [{ name: "v", ...volume }],
      },
    },
  });
  const claim = { persistentVolumeClaim: { claimName: "c" } };
  const cases: Readonly<Record<string, { spec: object; readings?: Reading[]; lost?: string }>> = {
    "is not the default": { spec: {} },
    "is not Pulumi Cloud": { spec: url("https://api.pulumi.com") },
    "is not a bucket": { spec: url("s3://bucket") },
    "in the pod's file system is lost": { spec: url("file:///state"), lost: "/state" },
    "in the shared folder is lost": { spec: url("file:///share/state"), lost: "/share/state" },
    "in the home folder is lost": { spec: url("file://~"), lost: "~" },
    "without a folder is in the home folder": { spec: url("file://"), lost: "~" },
    "on a claim is kept": { spec: { ...url("file:///state/x?a=b"), ...keeping("/state", claim) } },
    "on a read-only claim is lost": {
      spec: { ...url("file:///state"), ...keeping("/state", claim, true) },
      lost: "/state",
    },
    "outside a claim is lost": {
      spec: { ...url("file:///statement"), ...keeping("/state", claim) },
      lost: "/statement",
    },
    "on an ephemeral volume is lost": {
      spec: { ...url("file:///s"), ...keeping("/s", { emptyDir: {} }) },
      lost: "/s",
    },
    "is found in a Secret": {
      spec: { env: [{ name: "PULUMI_BACKEND_URL", valueFrom: { secretKeyRef: { name: "b", key: "url" } } }] },
      readings: [secret("b", { url: "file:///s" })],
      lost: "/s",
    },
    "is found among several variables": {
      spec: { envFrom: [{ configMapRef: { name: "b" }, prefix: "PULUMI_" }] },
      readings: [configMap("b", { BACKEND_URL: "file:///s" })],
      lost: "/s",
    },
    "is unknown if its Secret does not exist": {
      spec: { env: [{ name: "PULUMI_BACKEND_URL", valueFrom: { secretKeyRef: { name: "b", key: "url" } } }] },
    },
  };
  for (const [name, { spec: part, readings = [], lost }] of Object.entries(cases)) {
    test(name, () => {
      const pod = podSpecOf({ local: { dir: "/a" }, securityProfile: "baseline", ...part });
      expect(ephemeralBackend(pod, readings)).toBe(lost as never);
    });
  }

  test("of another container does not matter", () => {
    const other: Container = { name: "other", env: [{ name: "PULUMI_BACKEND_URL", value: "file:///s" }] };
    expect(ephemeralBackend({ containers: [other] }, [])).toBeUndefined();
  });
});
