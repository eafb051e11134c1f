/** Everything about webhooks of one replica: the server, if it is enabled, and what it shares with the controllers. */
import { networkInterfaces } from "node:os";

import type { Receiver } from "@pko/api";
import { systemClock, type Logger, type Registry, type Service, type Store } from "@pko/kube";
import { selfSignedCertificate } from "@pko/rpc/pki";

import type { Options } from "../options.ts";
import { exposeExpiry } from "../shared/certificate-expiry.ts";
import { pushes, type Pushes } from "../shared/channels/pushes.ts";
import { ActiveReceivers } from "./active-receivers.ts";
import { readCertificate, type Certificate } from "./certificate.ts";
import { WebhookEndpoint } from "./endpoint.ts";
import { leaderAddressIn, leaderAnnotations, type LeaderAddress } from "./leader-address.ts";
import { webhookServer, type WebhookServer } from "./server.ts";

export interface Webhooks {
  readonly pushes: Pushes;
  readonly active: ActiveReceivers;
  /** Whether they are enabled. */
  readonly isServed: boolean;
  /** From the annotations of the Lease. */
  readLeader(annotations: Readonly<Record<string, string>>): void;
  /** Of the Lease, while this replica leads. */
  ownAnnotations(): Readonly<Record<string, string>>;
  /** The server; nothing if webhooks are not enabled. */
  serve(parts: ServedParts): readonly Service[];
}

interface ServedParts {
  readonly store: Store<Receiver>;
  readonly metrics: Registry;
  readonly isLeading: () => boolean;
}

export async function createWebhooks(
  { webhooks: settings }: Pick<Options, "webhooks">,
  log: Logger,
): Promise<Webhooks> {
  const reported = pushes();
  const active = new ActiveReceivers();
  const certificate = settings && (await certificateFor(settings.certificateDirectory));
  let leader: LeaderAddress | undefined;
  let server: WebhookServer | undefined;
  return {
    pushes: reported,
    active,
    isServed: settings !== undefined,
    readLeader: (annotations) => (leader = leaderAddressIn(annotations)),
    ownAnnotations: () =>
      server
        ? leaderAnnotations({
            host: settings?.podIp ?? ownAddress(),
            port: server.port,
            fingerprint: server.fingerprint,
          })
        : {},
    serve(parts) {
      if (!settings || !certificate) return [];
      const endpoint = new WebhookEndpoint({ ...parts, receivers: active, pushes: reported, leader: () => leader });
      const handle = (request: Request): Promise<Response> => endpoint.handle(request);
      server = webhookServer({ ...settings, certificate, handle, log });
      exposeExpiry(parts.metrics, "webhook", () => server?.certificate);
      return [server];
    },
  };
}

const certificateName = "pulumi-kubernetes-operator-webhooks";

async function certificateFor(directory: string | undefined): Promise<Certificate> {
  if (directory !== undefined) return await readCertificate(directory);
  return await selfSignedCertificate(certificateName, new Date(systemClock.now()));
}

/** The first address that other machines can reach. */
function ownAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ internal }) => !internal)?.address ?? "127.0.0.1";
}
