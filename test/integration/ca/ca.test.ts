/** Whatever happens to the CA during an `up`: it starts once, its result and outputs are recorded once, and its pod is kept. */
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

import { CaScene } from "./scene.ts";

const hour = 3_600_000;
const day = 24 * hour;
const year = 365 * day;
const testTimeoutMs = 180_000;
const ago = (ms: number): Date => new Date(Date.now() - ms);

let scene: CaScene;
let podUid: string | undefined;

beforeAll(async () => {
  scene = await CaScene.open(await createAuthorities(ago(100 * day)));
  podUid = await scene.podUid();
}, testTimeoutMs);

afterAll(async () => {
  await scene[Symbol.asyncDispose]();
}, testTimeoutMs);

interface Options {
  /** The disturbance opens the gate itself. */
  readonly opensGate?: boolean;
}

let count = 0;

/** Checks that an `up` survives the disturbance, which happens while the `up` waits at its gate. */
async function expectSurvival(
  disturbance: (name: string) => Promise<void>,
  { opensGate = false }: Options = {},
): Promise<void> {
  const name = `up-${(count += 1)}`;
  const starts = scene.starts();
  await scene.startUpdate(name);
  await disturbance(name);
  if (!opensGate) await scene.openGate();
  const { status } = await scene.result(name);
  const failed = status?.conditions?.find(({ type }) => type === "Failed");
  expect(failed?.reason).toBe("UpdateSucceeded");
  const secret = await scene.client.get(builtin.secrets, scene.ref(status?.outputs ?? ""));
  expect(readOutputs(secret)).toEqual([{ name: "greeting", secret: false, json: '"hello"' }]);
  expect(scene.starts()).toBe(starts + 1);
  await waitFor(() => scene.timesRecorded(name) > 0, { what: "the event of the result" });
  expect(scene.timesRecorded(name)).toBe(1);
  expect(await scene.podUid()).toBe(podUid);
}

/** Starts a new operator, without the memory of the old one. `whileDown` runs in between. */
async function restart(whileDown?: () => Promise<void>, clock?: Clock): Promise<void> {
  await scene.stopOperator();
  await whileDown?.();
  await scene.startNextOperator(clock);
}

async function storedAuthorities(): Promise<Authorities> {
  return JSON.parse(await scene.storedCa()) as Authorities;
}

async function issueCertificate(authorities: Authorities, issuedAt: Date): Promise<Certificate> {
  return await issueWorkspaceCertificate(authorities, scene.ref("web"), issuedAt);
}

test(
  "an Update succeeds without a disturbance",
  async () => {
    await expectSurvival(() => Promise.resolve());
  },
  testTimeoutMs,
);

test(
  "the operator stores the same CA again when its Secret is deleted",
  async () => {
    const before = await scene.storedCa();
    await expectSurvival(async () => {
      await scene.deleteCa();
      // A timer does this within a minute.
      await scene.ca.load();
    });
    expect(await scene.storedCa()).toBe(before);
  },
  testTimeoutMs,
);

test(
  "an Update survives the deletion of the CA at a restart of the operator, as caused by old charts on reinstallation",
  async () => {
    const lost = (await storedAuthorities())[0]?.cert.trim() ?? "";
    expect(scene.trustedByAgent()).toContain(lost);
    await expectSurvival(() => restart(() => scene.deleteCa()));
    expect(scene.trustedByAgent()).not.toContain(lost);
  },
  testTimeoutMs,
);

test(
  "the result of a run that ends without operator and CA is recorded later",
  async () => {
    await expectSurvival(
      () =>
        restart(async () => {
          await scene.deleteCa();
          await scene.openGate();
        }),
      { opensGate: true },
    );
  },
  testTimeoutMs,
);

test(
  "an Update survives an emptied CA Secret at a restart, as after helm upgrade --force or a sync with Replace=true",
  async () => {
    const before = scene.certificate();
    await expectSurvival(() => restart(() => scene.patchCa({ data: null })));
    await scene.waitForRenewal(before);
  },
  testTimeoutMs,
);

test(
  "the agent trusts the new CA during its run when a rotation is requested",
  async () => {
    const before = scene.certificate();
    await expectSurvival(async () => {
      await scene.patchCa({ metadata: { annotations: { [caRotationRequestAnnotation]: "now" } } });
      await scene.ca.load();
      await scene.waitForRenewal(before);
    });
    expect(await storedAuthorities()).toHaveLength(2);
  },
  testTimeoutMs,
);

test(
  "an Update survives an operator certificate of a CA that the agent does not trust yet",
  async () => {
    await restart(async () => scene.storeCa(await createAuthorities(ago(100 * day))));
    await expectSurvival(async () => {
      await scene.storeCa(await addAuthority(await storedAuthorities(), ago(3 * hour)));
      await scene.ca.load();
    });
  },
  testTimeoutMs,
);

test(
  "an Update survives a workspace certificate that expires while no operator runs",
  async () => {
    await restart(async () => scene.storeCa(await createAuthorities(ago(100 * day))));
    const expired = await issueCertificate(await storedAuthorities(), ago(40 * day));
    await expectSurvival(() => restart(() => scene.storeCertificate(expired)));
  },
  testTimeoutMs,
);

test.each([
  ["has expired", -40 * day, "certificate has expired"],
  ["is not valid yet", 2 * hour, "certificate is not yet valid"],
])(
  "an Update reports a certificate that %s and does not fail until the kubelet updates the certificate",
  async (_, issuedAfterMs, problem) => {
    await restart(async () => scene.storeCa(await createAuthorities(ago(100 * day))));
    const rejected = await issueCertificate(await storedAuthorities(), ago(-issuedAfterMs));
    await expectSurvival(
      async (name) => {
        await restart(() => scene.pauseKubeletWith(rejected));
        const { status } = await scene.progressing(name, "TransientFailure", problem);
        const failed = status?.conditions?.find(({ type }) => type === "Failed");
        expect(failed?.status).toBe("False");
        await scene.openGate();
        scene.resumeKubelet();
      },
      { opensGate: true },
    );
    expect(scene.certificate()).not.toBe(rejected.cert);
  },
  testTimeoutMs,
);

test(
  "an Update survives a CA that expires while no operator runs",
  async () => {
    const expired = await createAuthorities(ago(400 * day));
    await expectSurvival(() =>
      restart(async () => {
        await scene.storeCa(expired);
        await scene.storeCertificate(await issueCertificate(expired, ago(395 * day)));
      }),
    );
    expect(await storedAuthorities()).not.toEqual(expired as never);
  },
  testTimeoutMs,
);

test.each([
  ["ahead", year],
  ["behind", -year],
])(
  "the CA is kept when the operator restarts with a clock that is a year %s",
  async (_, wrongByMs) => {
    const before = await scene.storedCa();
    const certificate = scene.certificate();
    await expectSurvival(() => restart(undefined, { ...systemClock, now: () => Date.now() + wrongByMs }));
    expect(await scene.storedCa()).toBe(before);
    expect(scene.certificate()).toBe(certificate);
    await restart();
  },
  testTimeoutMs,
);
