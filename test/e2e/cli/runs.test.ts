/** kubectl-pulumi about runs: the built executable, a real operator, real pods, and a pseudo-terminal where it matters. */
import { shellAnnotation, type Update } from "@pko/api";
import { waitFor } from "@pko/testkit";
import { expect, test } from "bun:test";

import {
  applyTo,
  CliUser,
  fromSecret,
  getStack,
  hasReason,
  isAt,
  isReady,
  isShown,
  javascriptProject,
  listUpdates,
  newSecret,
  newStack,
  onlyOnRequest,
  requestReconcile,
  stackUntil,
  useScene,
  type Typist,
} from "../harness.ts";
import { pictureSize, updatePicture } from "./pictures.ts";

const slow = 600_000;
const scene = useScene("cli-runs");
const cli = new CliUser(() => scene);

interface History {
  readonly items: readonly { readonly name: string }[];
}

const lastUpdate = async (): Promise<string> => (await cli.json<History>("history", "site")).items[0]?.name ?? "";

let repository: ReturnType<typeof scene.git.create>;

/** Resources that take as long to create as these numbers of milliseconds. */
const deployment = (url: string): Record<string, string> =>
  javascriptProject(
    "webapp",
    `
const pulumi = require("@pulumi/pulumi");

const provider = {
  async create({ ms }) {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return { id: "created", outs: { ms } };
  },
};

class Part extends pulumi.dynamic.Resource {
  constructor(name, ms, dependsOn) {
    super(provider, name, { ms }, { dependsOn });
  }
}

const network = new Part("network", 800);
const database = new Part("database", 1500, [network]);
const cache = new Part("cache", 800, [network]);
new Part("app", 800, [database, cache]);
exports.url = "${url}";
exports.password = new pulumi.Config().requireSecret("password");
`,
  );

test(
  "a Stack from its first run to a preview of a branch",
  async () => {
    repository = scene.git.create("site");
    repository.commit(deployment("https://one.example.com"));
    const secretsRef = { "webapp:password": fromSecret("passwords", "site") };
    await applyTo(
      scene,
      newSecret("passwords", { site: "first" }),
      newStack("site", { ...scene.git.source("site"), ...onlyOnRequest, secretsRef }),
    );
    // `watch` waits for the first run.
    const { out, code } = await cli.inTerminal(["watch", "site", "--timeout", "5m"], {
      last: /The up \S+ of Stack site succeeded[^]*url:/,
      size: pictureSize,
    });
    expect(code).toBe(0);
    updatePicture("watch site", out);
    expect(out).toContain("\u001B[J");
    await stackUntil(scene, "site", isReady);

    const first = await lastUpdate();
    expect(await cli.text("show", first)).toMatch(/^create /m);
    expect(await cli.text("tree", "site")).toContain("pulumi:pulumi:Stack");
    expect(await cli.text("logs", first)).not.toContain('"feed"');
    const urn = /urn:pulumi:\S+/.exec(await cli.text("tree", "site", "-o", "json"))?.[0].replace(/",?$/, "") ?? "";
    expect(await cli.text("trace", urn)).toContain(`${scene.namespace}/site`);

    const second = repository.commit(deployment("https://two.example.com"));
    // Otherwise the run may end before the command follows it.
    const request = (): Promise<void> => requestReconcile(scene, "site", "second");
    const lines = await cli.textAfter("Waiting for the next one", request, "watch", "site");
    expect(lines).toContain("up started");
    await stackUntil(scene, "site", isAt(second));
    expect(await cli.text("diff", first, await lastUpdate())).toContain("revision");

    expect(await cli.text("preview", "site", "--ref", second)).toContain("of Stack site");
  },
  slow,
);

const isRunningUp = ({ spec, status }: Update): boolean =>
  spec?.type === "up" && status?.startTime !== undefined && status.endTime === undefined;

const openShell = async (typist: Typist): Promise<void> => {
  await isShown(typist, "[y/N]");
  typist.type("y\r");
  await isShown(typist, "$ ");
};

test(
  "a shell suspends the Stack, and resumes it when it is closed or its connection breaks",
  async () => {
    const shell = await cli.inTerminal(["shell", "site"], {
      last: /The state is refreshed\. Stack site is resumed\./,
      async interact(typist) {
        await openShell(typist);
        typist.type("pulumi stack --show-name; echo in-$((40 + 2))\r");
        await isShown(typist, "in-42");
        typist.type("exit\r");
      },
    });
    expect(shell.code).toBe(0);
    const { spec, metadata } = await stackUntil(scene, "site", isReady);
    expect(spec.suspend).toBeUndefined();
    expect(metadata.annotations?.[shellAnnotation]).toMatch(/^\S+Z \S+/);
    expect(await cli.text("events", "site")).toContain("ShellOpened");

    const interrupted = await cli.inTerminal(["shell", "site"], {
      last: /Refreshing the state/,
      async interact(typist) {
        await openShell(typist);
        typist.type("sleep 1000\r");
        expect((await getStack(scene, "site")).spec.suspend).toBe(true);
        typist.kill("SIGTERM");
      },
    });
    expect(interrupted.code).toBe(130);
    expect((await getStack(scene, "site")).spec.suspend).toBeUndefined();
    await stackUntil(scene, "site", isReady);
    const refreshes = (await listUpdates(scene, "site")).filter(({ spec: each }) => each?.type === "refresh");
    expect(refreshes).toHaveLength(2);
  },
  slow,
);

test(
  "a run that hangs is cancelled",
  async () => {
    // The same project, in another language.
    repository.commit(javascriptProject("webapp", "setInterval(() => {}, 1000);"));
    await requestReconcile(scene, "site", "hang");
    await waitFor(async () => (await listUpdates(scene, "site")).some(isRunningUp), {
      timeoutMs: 240_000,
      what: "the run that hangs",
    });
    const cancelled = await cli.answer("y", ["cancel", "site"], /Requested the cancellation of Update/);
    expect(cancelled.code).toBe(0);
    await stackUntil(scene, "site", hasReason("UpdateFailed"));
    expect((await cli.why("site")).cause).toBe("cancelled");
  },
  slow,
);
