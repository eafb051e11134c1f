import { describe, expect, test } from "bun:test";

import { buildCommand, planDelivery, type Surroundings } from "./image-delivery.ts";

const image = "docker.io/pulumi/pulumi-kubernetes-operator:1";

function surroundings(context: string, programs: string, registry?: string): Surroundings {
  const names = programs.split(" ");
  return {
    context,
    architectures: ["arm64", "arm64"],
    hasProgram: (name) => names.includes(name),
    ...(registry !== undefined && { registry }),
  };
}

function commands(plan: ReturnType<typeof planDelivery>): string[] {
  if (typeof plan === "string") throw new Error(plan);
  const files = { image, containerfile: "operator.Containerfile", context: "." };
  return [buildCommand(plan, files), ...plan.deliver(image, "image.tar")].map((words) => words.join(" "));
}

const build = (builder: string): string =>
  `${builder} --platform=linux/arm64 --file=operator.Containerfile --tag=${image} .`;

describe("the image is built and delivered", () => {
  const cases: readonly (readonly [string, Surroundings, readonly string[]])[] = [
    [
      "to kind, with docker",
      surroundings("kind-dev", "docker podman kind"),
      [
        build("docker build"),
        `docker save --output=image.tar ${image}`,
        "kind load image-archive image.tar --name=dev",
      ],
    ],
    [
      "to kind, with podman",
      surroundings("kind-kind", "podman kind"),
      [
        build("podman build"),
        `podman save --output=image.tar ${image}`,
        "kind load image-archive image.tar --name=kind",
      ],
    ],
    [
      "to k3d, with buildah",
      surroundings("k3d-dev", "buildah k3d"),
      [
        build("buildah bud"),
        `buildah push ${image} docker-archive:image.tar:${image}`,
        "k3d image import image.tar --cluster=dev",
      ],
    ],
    [
      "to minikube",
      surroundings("minikube", "docker minikube"),
      [
        build("docker build"),
        `docker save --output=image.tar ${image}`,
        "minikube image load image.tar --profile=minikube",
      ],
    ],
    ["to Docker Desktop, which has it already", surroundings("docker-desktop", "docker"), [build("docker build")]],
    [
      "to a registry",
      surroundings("production", "podman", "registry.example.com/team"),
      [build("podman build"), `podman push ${image}`],
    ],
  ];
  for (const [what, given, expected] of cases) {
    test(what, () => expect(commands(planDelivery(given))).toEqual([...expected]));
  }

  test("with the name of the registry", () => {
    expect(planDelivery(surroundings("production", "docker", "registry.example.com/team"))).toMatchObject({
      repository: "registry.example.com/team/pulumi-kubernetes-operator",
      explanation: "built with docker and pushed to registry.example.com/team, because REGISTRY is set",
    });
  });
});

describe("it is not delivered", () => {
  const cases: readonly (readonly [string, Surroundings, string])[] = [
    ["without a builder", surroundings("kind-dev", "kind"), "install podman or buildah, or install and start docker"],
    [
      "without the program that loads images",
      surroundings("kind-dev", "docker"),
      "context kind-dev needs kind on the PATH, to load the image: install it, or set REGISTRY",
    ],
    ["to a cluster of another kind", surroundings("production", "docker"), "the cluster of context production pulls"],
    [
      "to nodes of different architectures",
      { ...surroundings("kind-dev", "docker kind"), architectures: ["amd64", "arm64"] },
      "the nodes have different architectures (amd64, arm64): set IMAGE",
    ],
  ];
  for (const [what, given, problem] of cases) {
    test(what, () => expect(planDelivery(given)).toContain(problem));
  }
});
