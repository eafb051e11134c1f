/** How this clone's image gets to a cluster of the user's own: built with the programs that are there, then loaded or pushed. Pure. */

export interface Surroundings {
  /** The current context of the kubeconfig, whose name shows what kind of cluster it is. */
  readonly context: string;
  /** Architectures of the nodes. */
  readonly architectures: readonly string[];
  readonly hasProgram: (name: string) => boolean;
  /** Where images can be pushed to and pulled from, for example registry.example.com/team. */
  readonly registry?: string;
}

export interface Delivery {
  readonly builder: Builder;
  readonly architecture: string;
  /** Without a tag. */
  readonly repository: string;
  /** Why it is done this way, for the user. */
  readonly explanation: string;
  /** Commands after the build. `archive` is a file that does not exist yet. */
  readonly deliver: (image: string, archive: string) => readonly (readonly string[])[];
}

type Builder = "docker" | "podman" | "buildah";

const name = "pulumi-kubernetes-operator";
const localRepository = `docker.io/pulumi/${name}`;

/** Clusters that run in the same virtual machine as Docker, and use its images. */
const sharedWithDocker = new Set(["docker-desktop", "rancher-desktop", "orbstack"]);

/** A string says what is missing, and what to do. */
export function planDelivery(surroundings: Surroundings): Delivery | string {
  const { architectures, hasProgram, registry } = surroundings;
  const builder = (["docker", "podman", "buildah"] as const).find(hasProgram);
  if (builder === undefined) {
    return "nothing here can build an image: install podman or buildah, or install and start docker, or set IMAGE to an image that the cluster can pull";
  }
  const [architecture = "amd64", ...others] = new Set(architectures);
  if (others.length > 0) {
    return `the nodes have different architectures (${[architecture, ...others].join(", ")}): set IMAGE to an image for all of them`;
  }
  const common = { builder, architecture };
  if (registry !== undefined) return { ...common, ...pushed(builder, registry) };
  const loaded = loading(surroundings, builder);
  return typeof loaded === "string" ? loaded : { ...common, repository: localRepository, ...loaded };
}

function pushed(builder: Builder, registry: string): Omit<Delivery, "builder" | "architecture"> {
  return {
    repository: `${registry}/${name}`,
    explanation: `built with ${builder} and pushed to ${registry}, because REGISTRY is set`,
    deliver: (image) => [[builder, "push", image]],
  };
}

type Loading = Pick<Delivery, "explanation" | "deliver">;

/** Programs that load images into clusters, by the prefix of the contexts that they create. */
const loaders: readonly (readonly [program: string, prefix: string, load: (from: Loaded) => string[]])[] = [
  ["kind", "kind-", ({ archive, cluster }) => ["load", "image-archive", archive, `--name=${cluster}`]],
  ["k3d", "k3d-", ({ archive, cluster }) => ["image", "import", archive, `--cluster=${cluster}`]],
  ["minikube", "minikube", ({ archive, context }) => ["image", "load", archive, `--profile=${context}`]],
];

interface Loaded {
  readonly archive: string;
  readonly context: string;
  /** The context without the prefix. */
  readonly cluster: string;
}

function loading({ context, hasProgram }: Surroundings, builder: Builder): Loading | string {
  const found = loaders.find(([, prefix]) => context.startsWith(prefix));
  if (found) {
    const [program, prefix, load] = found;
    if (!hasProgram(program))
      return `context ${context} needs ${program} on the PATH, to load the image: install it, or ${otherwise}`;
    const cluster = context.slice(prefix.length);
    return fromArchive(builder, program, (archive) => [program, ...load({ archive, context, cluster })]);
  }
  if (builder === "docker" && sharedWithDocker.has(context)) {
    return { explanation: `built with docker, whose images ${context} uses`, deliver: () => [] };
  }
  return `the cluster of context ${context} pulls images from a registry: ${otherwise}`;
}

const otherwise =
  "set REGISTRY to a registry that this machine can push to and the cluster can pull from (registry.example.com/team), " +
  "or IMAGE to an image that it can pull";

function fromArchive(builder: Builder, loader: string, load: (archive: string) => string[]): Loading {
  const save = (image: string, archive: string): string[] =>
    builder === "buildah"
      ? ["buildah", "push", image, `docker-archive:${archive}:${image}`]
      : [builder, "save", `--output=${archive}`, image];
  return {
    explanation: `built with ${builder} and loaded with ${loader}, because of the name of the context`,
    deliver: (image, archive) => [save(image, archive), load(archive)],
  };
}

export function buildCommand(
  { builder, architecture }: Delivery,
  {
    image,
    containerfile,
    context,
  }: { readonly image: string; readonly containerfile: string; readonly context: string },
): string[] {
  const options = [`--platform=linux/${architecture}`, `--file=${containerfile}`, `--tag=${image}`];
  return [builder, builder === "buildah" ? "bud" : "build", ...options, context];
}
