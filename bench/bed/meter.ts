/**
 * The resource usage of pods, like `ps` on their node: a pod with the host's PID namespace reads /proc, where the name of
 * the cgroup shows the pod of a process. That works on any node and for any image, even without a shell.
 */
import type { Kubectl } from "@pko/testkit";

/** Prints a line for each process of a pod: the pod's UID, CPU ticks, resident and anonymous kB, the name. */
const script = String.raw`for folder in /proc/[0-9]*; do
  read -r first < $folder/cgroup 2>/dev/null || continue
  pod=$(sed -n 's/.*pod\([0-9a-f]\{8\}[-_][0-9a-f_-]\{27\}\).*/\1/p;T;q' $folder/cgroup 2>/dev/null)
  [ -n "$pod" ] || continue
  numbers=$(awk '/^VmRSS:/{r=$2} /^RssAnon:/{a=$2} /^Name:/{n=$2} END{print r+0, a+0, n}' $folder/status 2>/dev/null)
  ticks=$(sed 's/.*) //' $folder/stat 2>/dev/null | awk '{print $12+$13}')
  [ -n "$ticks" ] && echo "$pod $ticks $numbers"
done
true`;

export interface Process {
  readonly podUid: string;
  readonly name: string;
  readonly residentMb: number;
  /** Without file pages, such as the executable, which the kernel can drop. */
  readonly anonymousMb: number;
  readonly cpuMs: number;
}

const ticksPerSecond = 100;

/** Pure. */
export function parseProcesses(output: string): Process[] {
  return output
    .trim()
    .split("\n")
    .flatMap((line) => {
      const [pod, ticks, resident, anonymous, ...name] = line.split(" ");
      if (pod === undefined || name.length === 0 || name[0] === "pause") return [];
      return [
        {
          podUid: pod.replaceAll("_", "-"),
          name: name.join(" "),
          residentMb: Number(resident) / 1024,
          anonymousMb: Number(anonymous) / 1024,
          cpuMs: (Number(ticks) * 1000) / ticksPerSecond,
        },
      ];
    });
}

export class Meter {
  readonly #kubectl: Kubectl;
  readonly #namespace: string;

  constructor(kubectl: Kubectl, namespace: string) {
    this.#kubectl = kubectl;
    this.#namespace = namespace;
  }

  /** One pod for each node; the caller waits for it. */
  static object(namespace: string, node: string, image: string): object {
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: meterName(node), namespace, labels: { "bench.pulumi.com/role": "meter" } },
      spec: {
        nodeName: node,
        hostPID: true,
        restartPolicy: "Never",
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: "meter",
            image,
            command: ["sleep", "infinity"],
            resources: { requests: { cpu: "1m", memory: "8Mi" } },
          },
        ],
      },
    };
  }

  async processes(node: string): Promise<Process[]> {
    const args = ["exec", "--namespace", this.#namespace, meterName(node), "--", "sh", "-c", script];
    return parseProcesses(await this.#kubectl(args));
  }
}

export const meterName = (node: string): string => `meter-${node}`.slice(0, 60);
