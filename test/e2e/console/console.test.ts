/** The console against the real operator: a Stack in the browser, from its creation to its outputs. */
import { clusterKubeconfig } from "@pko/cluster";
import { startConsole } from "@pko/console";
import { kubeconfigCredentials } from "@pko/kube";
import { expect, test } from "bun:test";
import { chromium } from "playwright-core";

import { applyTo, newProgram, newStack, useScene } from "../harness.ts";

const slow = 420_000;
const scene = useScene("console");

test(
  "a Stack is followed from its creation through its run to its outputs",
  async () => {
    const { namespace } = scene;
    const credentials = await kubeconfigCredentials([clusterKubeconfig()]);
    const started = await startConsole({ signIn: { mode: "kubeconfig", credentials }, port: 0 });
    // Tests run as root, for which Chromium's sandbox does not work.
    const browser = await chromium.launch({
      executablePath: "/usr/bin/chromium",
      args: ["--no-sandbox"],
      // The path of Chromium's socket has at most 107 characters.
      env: { ...process.env, TMPDIR: "/tmp" },
    });
    try {
      const page = await browser.newPage();
      await page.goto(started.url);
      await page.getByRole("heading", { level: 1, name: "Stacks" }).waitFor();
      await page.goto(new URL(`/stacks/${namespace}/web`, started.url).href);
      await page.getByText(`There is no Stack web in namespace ${namespace}.`).waitFor();

      await applyTo(
        scene,
        newProgram("greeting", { outputs: { text: "hello", password: { "fn::secret": "hunter2" } } }),
        newStack("web", { programRef: { name: "greeting" } }),
      );
      // Nothing is reloaded: the page follows the watch.
      await page.getByText("Ready", { exact: true }).first().waitFor({ timeout: slow });
      await page.getByRole("link", { name: "Outputs" }).click();
      await page.getByText("hello").waitFor();
      await page.getByText("secret: its value is not shown").waitFor();
      await page.getByRole("link", { name: "Runs" }).click();
      await page.getByRole("link", { name: /^web-/ }).first().click();
      await page.getByText("succeeded").first().waitFor();
      await page.getByRole("link", { name: "Log" }).click();
      await page.getByText("Updating (web):").waitFor();
      expect(await page.content()).not.toContain("hunter2");
    } finally {
      await browser.close();
      await started.stop();
    }
  },
  slow,
);
