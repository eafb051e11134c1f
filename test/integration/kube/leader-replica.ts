/**
 * A replica of a small operator in a separate process, for leader.test.ts: a manager with a controller that writes
 * continuously while it leads. Each write contains the term in which it was decided.
 */
import {
  requeueAfter,
  builtin,
  connect,
  connectFenced,
  controller,
  kernelAlarm,
  kubeconfigCredentials,
  leaseElector,
  logger,
  manager,
  reflector,
  runToExit,
  uniqueIdentity,
} from "@pko/kube";

interface ReplicaSettings {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly name: string;
  /** Without the fence, the test shows that it would detect a violation. */
  readonly fenced: boolean;
}

export const leaseName = "operator";
export const writeLabel = "leader-test";

/** client-go's defaults, shortened proportionally. */
const timing = { leaseDurationMs: 3000, renewDeadlineMs: 2000, retryPeriodMs: 400 };

async function run(settings: ReplicaSettings): Promise<never> {
  const { namespace, name } = settings;
  const log = logger({ level: "debug" }).child({ replica: name });
  const credentials = await kubeconfigCredentials(settings.kubeconfig);
  const client = connect(credentials);
  const lease = { namespace, name: leaseName };
  const alarm = settings.fenced ? kernelAlarm() : undefined;
  const elector = leaseElector({ client, lease, identity: uniqueIdentity(name), log, alarm, ...timing });
  const writer = settings.fenced ? connectFenced({ credentials, leadership: elector }) : client;
  const seeds = reflector(client, builtin.configMaps, { namespaces: [namespace], fieldSelector: "metadata.name=seed" });

  let writes = 0;
  const write = async (epoch: number): Promise<void> => {
    const metadata = { namespace, name: `${epoch}-${name}-${writes++}`, labels: { [writeLabel]: "true" } };
    const data = { epoch: String(epoch), replica: name };
    await writer.create(builtin.configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata, data });
  };
  const writing = controller({
    name: "writer",
    reflector: seeds,
    log,
    concurrency: 1,
    async reconcile() {
      const epoch = elector.term?.epoch ?? -1;
      // Several in a row without checking the signal, so that the process may be paused between them.
      for (let i = 0; i < 5; i++) await write(epoch);
      return requeueAfter(10);
    },
  });
  return await runToExit(manager({ reflectors: { seeds }, controllers: [writing], elector, log, drainMs: 5000 }), log);
}

if (import.meta.main) {
  const [kubeconfig = "", namespace = "", name = "", fenced = ""] = process.argv.slice(2);
  await run({ kubeconfig, namespace, name, fenced: fenced === "fenced" });
}
