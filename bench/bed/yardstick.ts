/** Runs the same program with the bare CLI in a pod with the same image, as a baseline for all times. */
import type { Kubectl } from "@pko/testkit";

import { environment, projectFile, serviceAccount, stateClaim, stateFolder } from "./stack.ts";

export const yardstickPod = "yardstick";

export function yardstickObject(namespace: string, image: string): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: yardstickPod, namespace },
    spec: {
      serviceAccountName: serviceAccount,
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 0,
      // Like the operator's default security profile.
      securityContext: { runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 },
      containers: [
        {
          name: "pulumi",
          image,
          command: ["sleep", "infinity"],
          env: Object.entries(environment).map(([name, value]) => ({ name, value })),
          // Little, so that it does not affect what is measured.
          resources: { requests: { cpu: "5m", memory: "16Mi" } },
          volumeMounts: [{ name: "state", mountPath: stateFolder }],
        },
      ],
      volumes: [{ name: "state", persistentVolumeClaim: { claimName: stateClaim } }],
    },
  };
}

interface BareRun {
  readonly upMs: number;
  /** `pulumi version`: the minimum time of each start of the CLI. */
  readonly startMs: number;
}

export class Yardstick {
  readonly #kubectl: Kubectl;
  readonly #namespace: string;
  #round = 0;

  constructor(kubectl: Kubectl, namespace: string) {
    this.#kubectl = kubectl;
    this.#namespace = namespace;
  }

  async sh(script: string): Promise<string> {
    const args = ["exec", "-i", "--namespace", this.#namespace, yardstickPod, "--", "sh", "-s"];
    return await this.#kubectl(args, { input: script });
  }

  async prepare(): Promise<void> {
    await this.sh(`set -e
mkdir -p ~/bench
cd ~/bench
cat > Pulumi.yaml <<'END'
${projectFile("first")}
END
pulumi stack init yardstick-$(date +%s) >&2
pulumi up --yes --skip-preview --non-interactive >&2
`);
  }

  /** One update with a change. Measured in the pod, so it includes only the CLI. */
  async measure(): Promise<BareRun> {
    this.#round += 1;
    const output = await this.sh(`set -e
cd ~/bench
cat > Pulumi.yaml <<'END'
${projectFile(`round ${this.#round}`)}
END
a=$(date +%s%N)
pulumi version > /dev/null
b=$(date +%s%N)
pulumi up --yes --skip-preview --non-interactive > /tmp/up.log 2>&1 || { cat /tmp/up.log >&2; exit 1; }
c=$(date +%s%N)
echo $(( (b - a) / 1000 )) $(( (c - b) / 1000 ))
`);
    const [start, up] = output
      .trim()
      .split(" ")
      .map((microseconds) => Number(microseconds) / 1000);
    return { startMs: start ?? Number.NaN, upMs: up ?? Number.NaN };
  }
}
