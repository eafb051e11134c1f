/** `kubectl exec` into a workspace, and the Pulumi CLI as users type it there. */
import { expect, test } from "bun:test";

import { waitFor } from "@pko/testkit";

import {
  agentLog,
  applyTo,
  at,
  execInPod,
  filesProject,
  fromSecret,
  isReady,
  kubectl,
  listUpdates,
  newSecret,
  newStack,
  requestReconcile,
  stackUntil,
  useScene,
} from "../harness.ts";

const slow = 420_000;
const scene = useScene("shell");
const canary = "canary-of-the-shell";

/** The output and exit code of a command as typed after `kubectl exec … --`. */
async function exec(stack: string, ...command: readonly string[]): Promise<string> {
  const script = `"$@" 2>&1; echo "exit $?"`;
  const place = ["exec", `${stack}-workspace-0`, ...at(scene), "-c", "pulumi", "--"];
  const attempt = async (): Promise<string | undefined> => {
    try {
      return await kubectl([...place, "sh", "-c", script, "sh", ...command]);
    } catch (error) {
      if (String(error).includes(lostStreams)) return undefined;
      throw error;
    }
  };
  return await waitFor(attempt, { what: `kubectl exec ${command.join(" ")}` });
}

/** kubectl 1.31 discards what arrives before it has registered the streams of a command. */
const lostStreams = "closed all streams";

test(
  "kubectl exec starts in the program's folder, with the stack selected and its configuration, backend and passphrase",
  async () => {
    const repository = scene.git.create("shell");
    const commit = (...files: readonly (readonly [name: string, content: string])[]): void => {
      const body = files.map(([name, content]) => `new File("${name}", "${content}");`).join("\n");
      const project = Object.entries(filesProject(body)).map(([path, text]) => [`infra/${path}`, text] as const);
      // The package manager writes these files.
      const ignored = { ".gitignore": ".package-lock.json\npackage-lock.json\n" };
      repository.commit({ ...Object.fromEntries(project), ...ignored, "README.md": "not here" });
    };
    commit(["first", "x"]);
    await applyTo(scene, newSecret("secrets", { password: canary }));
    await applyTo(
      scene,
      newStack("shell", {
        ...scene.git.source("shell"),
        repoDir: "infra",
        config: { "files:region": "eu" },
        secretsRef: { "files:password": fromSecret("secrets", "password") },
      }),
    );
    await stackUntil(scene, "shell", isReady);

    // After an update, with a shell and without one.
    expect(await exec("shell", "pwd")).toMatch(/^\/share\/(workspace|source\/infra)\nexit 0\n$/);
    expect(await exec("shell", "pulumi", "stack")).toContain("Current stack is shell");
    expect(await exec("shell", "bash", "-c", "pulumi stack --show-name")).toBe("shell\nexit 0\n");
    expect(await exec("shell", "pulumi", "config")).toMatch(/password +\[secret\]\nregion +eu\nexit 0/);
    expect(await exec("shell", "bash", "-c", "pulumi config get password")).toBe(`${canary}\nexit 0\n`);
    expect(await exec("shell", "pulumi", "preview")).toMatch(/2 unchanged[^]*exit 0/);
    expect(await exec("shell", "pulumi", "refresh", "--yes")).toMatch(/2 unchanged[^]*exit 0/);
    expect(await exec("shell", "pulumi", "cancel", "--yes")).toMatch(/has been cancel+ed[^]*exit 0/);
    expect(await exec("shell", "git", "status", "--porcelain")).toBe("exit 0\n");

    // During a run.
    commit(["first", "x"], ["second", "held"]);
    await requestReconcile(scene, "shell", "held");
    await waitFor(
      async () => (await agentLog(scene, "shell")).includes("pulumi-nodejs:dynamic:Resource second creating"),
      {
        timeoutMs: slow / 4,
        what: "the run to wait for its resource",
      },
    );
    expect(await exec("shell", "pulumi", "stack", "--show-name")).toBe("shell\nexit 0\n");
    expect(await exec("shell", "pulumi", "preview")).toMatch(/1 to create[^]*exit 0/);
    expect(await exec("shell", "pulumi", "refresh", "--yes")).toContain("the stack is currently locked");
    expect(await exec("shell", "pulumi", "config", "get", "region")).toBe("eu\nexit 0\n");
    expect(await exec("shell", "pulumi", "cancel", "--yes")).toMatch(/has been cancel+ed[^]*exit 0/);
    await execInPod(scene, "shell", "touch /state/release");
    await waitFor(
      async () => (await listUpdates(scene, "shell")).every(({ status }) => status?.endTime !== undefined),
      {
        timeoutMs: slow / 4,
        what: "the run to end",
      },
    );

    const log = await agentLog(scene, "shell");
    expect(log).toMatch(/^Updating \(shell\):$/m);
    expect(log).not.toContain(canary);
  },
  slow,
);
