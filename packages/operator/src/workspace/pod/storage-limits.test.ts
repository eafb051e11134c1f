import { describe, expect, test } from "bun:test";
import type {
  Container,
  EmptyDirVolumeSource,
  PodTemplateSpec,
  ResourceRequirements,
  Volume,
} from "kubernetes-types/core/v1";

import { bytesOf, limitStorage } from "./storage-limits.ts";

const storage = "ephemeral-storage";

function limited(
  resources: ResourceRequirements | undefined,
  part: {
    readonly emptyDir?: EmptyDirVolumeSource;
    readonly more?: readonly Container[];
    readonly volumes?: readonly Volume[];
  } = {},
): PodTemplateSpec {
  const { emptyDir = {}, more = [], volumes = [] } = part;
  const pulumi = { name: "pulumi", ...(resources && { resources }) };
  return limitStorage({
    spec: {
      containers: [pulumi, ...more],
      volumes: [{ name: "share", emptyDir }, ...volumes],
      initContainers: [{ name: "bootstrap" }],
    },
  });
}

const storageOf = ({ resources }: Container): unknown[] => [
  resources?.requests?.[storage],
  resources?.limits?.[storage],
];
const firstOf = ({ spec }: PodTemplateSpec): unknown[] => storageOf(spec?.containers[0] ?? { name: "" });
const sizeOf = ({ spec }: PodTemplateSpec): unknown => spec?.volumes?.[0]?.emptyDir?.sizeLimit;

type Row = readonly [string, ResourceRequirements | undefined, { readonly storage: unknown[]; readonly size: unknown }];

const rows: readonly Row[] = [
  ["the default is a limit of 10Gi and a small request", undefined, { storage: ["256Mi", "10Gi"], size: "10Gi" }],
  ["a request is kept", { requests: { [storage]: "1Gi" } }, { storage: ["1Gi", "10Gi"], size: "10Gi" }],
  [
    "a request above the default raises the limit",
    { requests: { [storage]: "20Gi" } },
    { storage: ["20Gi", "20Gi"], size: "20Gi" },
  ],
  [
    "a number is a quantity as well",
    { requests: { [storage]: 30_000_000_000 as unknown as string } },
    { storage: [3e10, 3e10], size: 3e10 },
  ],
  [
    "a limit is kept, and limits the volume",
    { limits: { [storage]: "50Gi" } },
    { storage: [undefined, "50Gi"], size: "50Gi" },
  ],
  [
    "both are kept",
    { requests: { [storage]: "1Gi" }, limits: { [storage]: "2Gi", memory: "1Gi" } },
    { storage: ["1Gi", "2Gi"], size: "2Gi" },
  ],
  [
    "an invalid quantity is left to the API server",
    { requests: { [storage]: "much" } },
    { storage: ["much", "10Gi"], size: "10Gi" },
  ],
];

test.each(rows)("%s", (_, resources, expected) => {
  const template = limited(resources);
  expect({ storage: firstOf(template), size: sizeOf(template) }).toEqual(expected);
});

describe("the volume", () => {
  test("keeps the limit of a template", () => {
    expect(sizeOf(limited(undefined, { emptyDir: { sizeLimit: "1Gi" } }))).toBe("1Gi");
  });

  test("in memory is not limited by disk space", () => {
    expect(sizeOf(limited(undefined, { emptyDir: { medium: "Memory" } }))).toBeUndefined();
  });

  test("of another type is unchanged", () => {
    const claim = { name: "share", persistentVolumeClaim: { claimName: "c" } };
    const { spec } = limitStorage({ spec: { containers: [{ name: "pulumi" }], volumes: [claim] } });
    expect(spec?.volumes).toEqual([claim]);
  });
});

test("other containers keep their resources: the limit of one container limits the whole pod", () => {
  const small = { name: "small", resources: { limits: { [storage]: "1Gi" } } };
  const { spec } = limited(undefined, { more: [{ name: "docker" }, small] });
  expect(spec?.containers.slice(1)).toEqual([{ name: "docker" }, small]);
  expect(spec?.initContainers).toEqual([{ name: "bootstrap" }]);
});

describe("the default limit", () => {
  const sized = (name: string, sizeLimit: string, medium = ""): Volume => ({ name, emptyDir: { sizeLimit, medium } });
  const cases: Readonly<Record<string, readonly [part: Parameters<typeof limited>[1], limit: unknown, size: unknown]>> =
    {
      "leaves room for a larger volume of the program": [{ emptyDir: { sizeLimit: "50Gi" } }, "50Gi", "50Gi"],
      "leaves room for another volume": [{ volumes: [sized("cache", "80Gi")] }, "80Gi", "80Gi"],
      "leaves room for all volumes together": [
        { emptyDir: { sizeLimit: "6Gi" }, volumes: [sized("cache", "8Gi")] },
        "14336Mi",
        "6Gi",
      ],
      "is not lowered by small volumes": [{ volumes: [sized("cache", "1Gi")] }, "10Gi", "10Gi"],
      "does not count volumes in memory": [
        { volumes: [sized("fast", "80Gi", "Memory"), { name: "scratch", emptyDir: { medium: "Memory" } }] },
        "10Gi",
        "10Gi",
      ],
      "does not count volumes that are not on the node's disk": [
        { volumes: [{ name: "claim", persistentVolumeClaim: { claimName: "c" } }] },
        "10Gi",
        "10Gi",
      ],
      "is absent where a volume of the template may grow without bound": [
        { volumes: [{ name: "cache", emptyDir: {} }] },
        undefined,
        undefined,
      ],
      "is absent where a volume has the size 0, which is no bound": [
        { volumes: [sized("c", "0")] },
        undefined,
        undefined,
      ],
    };
  for (const [name, [part, limit, size]] of Object.entries(cases)) {
    test(name, () => {
      const template = limited(undefined, part);
      expect({ storage: firstOf(template), size: sizeOf(template) }).toEqual({ storage: ["256Mi", limit], size });
    });
  }

  test("is the request if that exceeds the volumes", () => {
    const template = limited({ requests: { [storage]: "90Gi" } }, { volumes: [sized("cache", "80Gi")] });
    expect(firstOf(template)).toEqual(["90Gi", "90Gi"]);
  });

  test("does not replace a limit of the template, whatever its volumes", () => {
    const volumes = [sized("cache", "80Gi"), { name: "open", emptyDir: {} }];
    expect(firstOf(limited({ limits: { [storage]: "20Gi" } }, { volumes }))).toEqual([undefined, "20Gi"]);
  });
});

test.each([
  ["1", 1],
  ["1k", 1000],
  ["1Ki", 1024],
  ["1.5Gi", 1.5 * 2 ** 30],
  ["2e3", 2000],
  ["500m", 0.5],
  [7, 7],
  ["much", undefined],
  ["", undefined],
])("%p is %p bytes", (quantity, bytes) => expect(bytesOf(quantity)).toBe(bytes));
