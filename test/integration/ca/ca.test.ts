/** Whatever becomes of the CA while an `up` runs: it starts once, its result and outputs are recorded once, and its pod stays. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { caRotationRequestAnnotation } from "@pko/api";
import { builtin, systemClock, type Clock } from "@pko/kube";
import { readOutputs } from "@pko/operator";
import {
  addAuthority,
  createAuthorities,
  issueWorkspaceCertificate,
  type Authorities,
  type Certificate,
} from "@pko/rpc/pki";

import { waitFor } from "@pko/testkit";

import { CaCluster } from "./cluster.ts";

const hour = 3_600_000;
const day = 24 * hour;
const year = 365 * day;
const patience = 120_000;
const ago = (ms: number): Date => new Date(Date.now() - ms);

let cluster: CaCluster;
let podUid: string | undefined;

beforeAll(async () => {
  cluster = await CaCluster.open(await createAuthorities(ago(100 * day)));
  podUid = await cluster.podUid();
}, patience);

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
}, patience);

interface Settings {
  /** The disturbance opens the gate itself. */
  readonly opensGate?: boolean;
}

let count = 0;

/** The disturbance comes while the `up` waits at its gate. */
async function survives(
  disturbance: (name: string) => Promise<void>,
  { opensGate = false }: Settings = {},
): Promise<void> {
  const name = `up-${(count += 1)}`;
  const starts = cluster.starts();
  await cluster.startUpdate(name);
  await disturbance(name);
  if (!opensGate) await cluster.openGate();
  const { status } = await cluster.result(name);
  const failed = status?.conditions?.find(({ type }) => type === "Failed");
  expect(failed?.reason).toBe("UpdateSucceeded");
  const secret = await cluster.client.get(builtin.secrets, cluster.ref(`${name}-stack-outputs`));
  expect(readOutputs(secret)).toEqual([{ name: "greeting", secret: false, json: '"hello"' }]);
  expect(cluster.starts()).toBe(starts + 1);
  await waitFor(() => cluster.timesRecorded(name) > 0, { what: "the event of the result" });
  expect(cluster.timesRecorded(name)).toBe(1);
  expect(await cluster.podUid()).toBe(podUid);
}

/** What is in its memory is lost; `meanwhile` no operator runs. */
async function restart(meanwhile?: () => Promise<void>, clock?: Clock): Promise<void> {
  await cluster.stopOperator();
  await meanwhile?.();
  cluster.startOperator(clock);
}

async function storedAuthorities(): Promise<Authorities> {
  return JSON.parse(await cluster.storedCa()) as Authorities;
}

async function certificateOf(authorities: Authorities, issuedAt: Date): Promise<Certificate> {
  const { namespace = "" } = cluster.ref("web");
  return await issueWorkspaceCertificate(authorities, { namespace, name: "web" }, issuedAt);
}

test(
  "nothing: the Update just succeeds",
  async () => {
    await survives(() => Promise.resolve());
  },
  patience,
);

test(
  "the Secret of the CA is deleted while the operator runs: the same CA is stored again",
  async () => {
    const before = await cluster.storedCa();
    await survives(async () => {
      await cluster.deleteCa();
      // What its timer does within a minute.
      await cluster.operator.authority.load();
    });
    expect(await cluster.storedCa()).toBe(before);
  },
  patience,
);

test(
  "the Secret of the CA is deleted and the operator restarts, as a chart that owned it did on uninstall and install",
  async () => {
    const lost = (await storedAuthorities())[0]?.cert.trim() ?? "";
    expect(cluster.trustedByAgent()).toContain(lost);
    await survives(() => restart(() => cluster.deleteCa()));
    expect(cluster.trustedByAgent()).not.toContain(lost);
  },
  patience,
);

test(
  "the run ends while there is no operator and no CA: its result is recorded later",
  async () => {
    await survives(
      () =>
        restart(async () => {
          await cluster.deleteCa();
          await cluster.openGate();
        }),
      { opensGate: true },
    );
  },
  patience,
);

test(
  "the Secret of the CA is emptied and the operator restarts, as after helm upgrade --force or a sync with Replace=true",
  async () => {
    const before = cluster.certificate();
    await survives(() => restart(() => cluster.patchCa({ data: null })));
    await cluster.renewedCertificate(before);
  },
  patience,
);

test(
  "a rotation is requested: the agent is given the new trust while its run goes on",
  async () => {
    const before = cluster.certificate();
    await survives(async () => {
      await cluster.patchCa({ metadata: { annotations: { [caRotationRequestAnnotation]: "now" } } });
      await cluster.operator.authority.load();
      await cluster.renewedCertificate(before);
    });
    expect(await storedAuthorities()).toHaveLength(2);
  },
  patience,
);

test(
  "the next CA signs the operator's certificate before the agent has heard of it",
  async () => {
    await restart(async () => cluster.storeCa(await createAuthorities(ago(100 * day))));
    await survives(async () => {
      await cluster.storeCa(await addAuthority(await storedAuthorities(), ago(3 * hour)));
      await cluster.operator.authority.load();
    });
  },
  patience,
);

test(
  "the workspace's certificate has expired while no operator ran",
  async () => {
    await restart(async () => cluster.storeCa(await createAuthorities(ago(100 * day))));
    const expired = await certificateOf(await storedAuthorities(), ago(40 * day));
    await survives(() => restart(() => cluster.storeCertificate(expired)));
  },
  patience,
);

test.each([
  ["has expired", -40 * day, "certificate has expired"],
  ["is not valid yet", 2 * hour, "certificate is not yet valid"],
])(
  "TLS refuses a certificate that %s until the kubelet brings another: the Update reports it and does not fail",
  async (_, issuedAfterMs, problem) => {
    await restart(async () => cluster.storeCa(await createAuthorities(ago(100 * day))));
    const refused = await certificateOf(await storedAuthorities(), ago(-issuedAfterMs));
    await survives(
      async (name) => {
        await restart(() => cluster.pauseKubeletWith(refused));
        const { status } = await cluster.progressing(name, "TransientFailure");
        const failed = status?.conditions?.find(({ type }) => type === "Failed");
        expect(failed?.status).toBe("False");
        expect(failed?.message).toContain(problem);
        await cluster.openGate();
        cluster.resumeKubelet();
      },
      { opensGate: true },
    );
    expect(cluster.certificate()).not.toBe(refused.cert);
  },
  patience,
);

test(
  "the CA itself has expired while no operator ran",
  async () => {
    const expired = await createAuthorities(ago(400 * day));
    await survives(() =>
      restart(async () => {
        await cluster.storeCa(expired);
        await cluster.storeCertificate(await certificateOf(expired, ago(395 * day)));
      }),
    );
    expect(await storedAuthorities()).not.toEqual(expired as never);
  },
  patience,
);

test.each([
  ["ahead", year],
  ["behind", -year],
])(
  "the operator restarts with a clock that is a year %s: the CA stays",
  async (_, wrongByMs) => {
    const before = await cluster.storedCa();
    const certificate = cluster.certificate();
    await survives(() => restart(undefined, { ...systemClock, now: () => Date.now() + wrongByMs }));
    expect(await cluster.storedCa()).toBe(before);
    expect(cluster.certificate()).toBe(certificate);
    await restart();
  },
  patience,
);
