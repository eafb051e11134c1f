import { describe, expect, test } from "bun:test";

import { OptionsError, parseOptions } from "./options.ts";

const image = ["--agent-image", "example/operator:1"];

describe("settings", () => {
  test("have defaults for a cluster when only the image is given", () => {
    expect(parseOptions(image, {})).toMatchObject({
      namespace: "pulumi-kubernetes-operator",
      watchNamespaces: [],
      idleTimeoutSeconds: 600,
      enforceSecurityProfile: true,
      referenceCheckMs: 60_000,
      log: { level: "info", format: "json" },
      probes: { hostname: "0.0.0.0", port: 8081 },
      allowHttp: false,
    });
    expect(parseOptions(image, {}).leaderElection).toBeUndefined();
  });

  test("are read from the environment", () => {
    const env = { OPERATOR_AGENT_IMAGE: "a", OPERATOR_WATCH_NAMESPACES: "one,two", OPERATOR_LEADER_ELECT: "true" };
    const options = parseOptions([], env);
    expect(options).toMatchObject({ agentImage: "a", watchNamespaces: ["one", "two"] });
    expect(options.leaderElection).toEqual({ leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 });
  });

  test("accept durations, limits and policies in the format of the chart values", () => {
    const env = {
      OPERATOR_LEADER_ELECT: "true",
      OPERATOR_LEASE_DURATION: "1m",
      OPERATOR_RENEW_DEADLINE: "45s",
      OPERATOR_RETRY_PERIOD: "10s",
      OPERATOR_KUBE_API_TIMEOUT: "1.5s",
      OPERATOR_FLUX_MAX_UNPACKED_BYTES: "-1",
      OPERATOR_RECORDS_MAX_TOTAL_SIZE: "2Gi",
      OPERATOR_AGENT_IMAGE_PULL_POLICY: "Always",
      OPERATOR_METRICS_SECURE: "true",
    };
    expect(parseOptions(image, env)).toMatchObject({
      leaderElection: { leaseDurationMs: 60_000, renewDeadlineMs: 45_000, retryPeriodMs: 10_000 },
      kubeApiTimeoutMs: 1500,
      maxUnpackedBytes: Number.MAX_SAFE_INTEGER,
      maxRecordsBytes: 2 * 1024 ** 3,
      agentImagePullPolicy: "Always",
      metricsSecure: true,
    });
  });

  test("accept the budget of records in bytes or with a unit", () => {
    const budget = (text: string): number =>
      parseOptions([...image, `--records-max-total-size=${text}`], {}).maxRecordsBytes;
    expect(parseOptions(image, {}).maxRecordsBytes).toBe(512 * 1024 * 1024);
    expect([budget("1000"), budget("3Ki"), budget("0")]).toEqual([1000, 3072, 0]);
    expect(() => budget("512MB")).toThrow("is not a size such as 512Mi");
  });

  test("can turn off the enforcement of security profiles", () => {
    const env = { OPERATOR_ENFORCE_SECURITY_PROFILE: "false" };
    expect(parseOptions(image, env).enforceSecurityProfile).toBe(false);
    expect(parseOptions([...image, "--enforce-security-profile=true"], env).enforceSecurityProfile).toBe(true);
  });

  test("that are booleans are true or false in the environment, and off when empty", () => {
    const upgrades = (value: string): boolean => parseOptions(image, { OPERATOR_UPGRADE_CRDS: value }).upgradeCrds;
    expect([upgrades("true"), upgrades("false"), upgrades("")]).toEqual([true, false, false]);
    for (const value of ["True", "1", "yes", " true"]) {
      expect(() => upgrades(value)).toThrow(OptionsError);
      expect(() => upgrades(value)).toThrow("--upgrade-crds (or OPERATOR_UPGRADE_CRDS) is neither true nor false");
    }
  });

  test("allow plain http for repositories only on request", () => {
    expect(parseOptions(image, {}).allowHttp).toBe(false);
    expect(parseOptions(image, { OPERATOR_ALLOW_HTTP: "true" }).allowHttp).toBe(true);
  });

  test("on the command line take precedence over the environment", () => {
    expect(parseOptions(["--agent-image=b"], { OPERATOR_AGENT_IMAGE: "a" }).agentImage).toBe("b");
  });

  test("let workspaces authenticate to Pulumi Cloud automatically unless OIDC is disabled", () => {
    expect(parseOptions(image, {}).oidc).toEqual({
      automatic: true,
      holder: { kind: "organization", admin: false },
      expirationSeconds: 7200,
    });
    const env = { OPERATOR_OIDC_ENABLED: "false", OPERATOR_OIDC_ORGANIZATION: "acme", OPERATOR_OIDC_TEAM: "platform" };
    expect(parseOptions([...image, "--oidc-expiration-seconds=600"], env).oidc).toEqual({
      automatic: false,
      organization: "acme",
      holder: { kind: "team", team: "platform" },
      expirationSeconds: 600,
    });
    expect(parseOptions([...image, "--oidc-user=jane"], {}).oidc.holder).toEqual({ kind: "user", user: "jane" });
    expect(parseOptions([...image, "--oidc-admin"], {}).oidc.holder).toEqual({ kind: "organization", admin: true });
  });

  test.each<[string, string[], string]>([
    ["no image", [], "--agent-image (or OPERATOR_AGENT_IMAGE) is missing"],
    ["an invalid number", [...image, "--idle-timeout-seconds=soon"], "is not a whole number"],
    ["an invalid log level", [...image, "--log-level=loud"], "is not a level"],
    ["an invalid log format", [...image, "--log-format=poem"], "is not a format"],
    ["an invalid boolean", [...image, "--oidc-enabled=perhaps"], "is neither true nor false"],
    ["a team and a user", [...image, "--oidc-team=a", "--oidc-user=b"], "cannot be combined with --oidc-team"],
    [
      "an administrator of a team",
      [...image, "--oidc-team=a", "--oidc-admin"],
      "cannot be combined with --oidc-team or --oidc-user",
    ],
    ["an invalid address", [...image, "--metrics-address=here"], "is not HOST:PORT"],
  ])("are rejected with %s", (_, args, message) => {
    expect(() => parseOptions(args, {})).toThrow(OptionsError);
    expect(() => parseOptions(args, {})).toThrow(message);
  });

  test("that are unknown are rejected", () => {
    expect(() => parseOptions([...image, "--color=blue"], {})).toThrow("--color");
  });
});
