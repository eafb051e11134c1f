/** The versions of Kubernetes that the local cluster and the API servers of tests can be built from. */

/**
 * Each but the default has a module file, for example go/kube/go-1.33.mod. Older versions lack the queues that the volume
 * provisioner needs.
 */
const versions = { "1.31": "1.31.4", "1.33": "1.33.4", "1.34": "1.34.10", "1.35": "1.35.8", "1.37": "1.37.1" } as const;

type Minor = keyof typeof versions;
const minors = Object.keys(versions) as Minor[];
const defaultMinor: Minor = "1.37";

export interface KubernetesBuild {
  /** For `go -modfile`. */
  readonly moduleFile: string;
  readonly variables: Readonly<Record<string, string>>;
}

/** `wanted` is the value of KUBE, for example `1.33`. */
export const kubernetesVersion = (wanted: string | undefined): string => versions[minorFor(wanted)];

function minorFor(wanted: string | undefined): Minor {
  const minor = minors.find((known) => known === (wanted || defaultMinor));
  if (minor === undefined) throw new Error(`KUBE is ${wanted}: set it to one of ${minors.join(", ")}`);
  return minor;
}

export function kubernetesBuild(wanted: string | undefined): KubernetesBuild {
  const minor = minorFor(wanted);
  const variable = (name: string): string => `k8s.io/component-base/version.${name}`;
  return {
    moduleFile: minor === defaultMinor ? "go.mod" : `go-${minor}.mod`,
    variables: {
      [variable("gitVersion")]: `v${versions[minor]}`,
      [variable("gitMajor")]: "1",
      [variable("gitMinor")]: minor.slice("1.".length),
    },
  };
}
