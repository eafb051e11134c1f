import { expect, test } from "bun:test";
import { stableEnvironment } from "./environment.ts";

const pod = { hostname: "web-workspace-0", addresses: ["10.1.2.3"] };
const service = (ip: string): Record<string, string> => ({
  WEB_SERVICE_HOST: ip,
  WEB_SERVICE_PORT: "80",
  WEB_SERVICE_PORT_HTTP: "80",
  WEB_PORT: `tcp://${ip}:80`,
  WEB_PORT_80_TCP: `tcp://${ip}:80`,
  WEB_PORT_80_TCP_PROTO: "tcp",
});

test("the environments of two pods of a Workspace are equal", () => {
  const common = { REGION: "east", PULUMI_CONFIG_PASSPHRASE: "secret", PATH: "/usr/bin" };
  const first = stableEnvironment(
    {
      ...common,
      ...service("10.0.0.1"),
      HOSTNAME: "web-workspace-0",
      HOME: "/root",
      TRACEPARENT: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
      TRACESTATE: "vendor=one",
      MY_POD: "web-workspace-0",
      MY_IP: "10.1.2.3",
    },
    pod,
  );
  const second = stableEnvironment(
    {
      ...common,
      HOME: "/share/agent/home",
      TMPDIR: "/share/agent/tmp",
      PULUMI_HOME: "/share/x",
      MY_POD: "web-workspace-1",
      MY_IP: "10.9.9.9",
    },
    { hostname: "web-workspace-1", addresses: ["10.9.9.9"] },
  );
  expect(first).toEqual(second);
  expect(first).toEqual({ ...common, MY_POD: "<name of the pod>", MY_IP: "<address of the pod>" });
});

test("variables that only look like those of a Service are kept", () => {
  const own = { DB_SERVICE_HOST: "db.example.com", DB_SERVICE_PORT: "5432", DB_PORT: "5432", DB_PORT_NAME: "x" };
  expect(stableEnvironment(own, pod)).toEqual(own);
  expect(stableEnvironment({ ...service("10.0.0.1"), WEB_PORTAL: "kept", WEB_SERVICE_NAME: "kept" }, pod)).toEqual({
    WEB_PORTAL: "kept",
    WEB_SERVICE_NAME: "kept",
  });
});
