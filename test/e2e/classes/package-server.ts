/** A package registry with one package of npm, which needs one Pulumi plugin. It counts the downloads. */
import { createHash } from "node:crypto";

import { tarOf } from "@pko/agent/testing";

import { machineAddress } from "../harness.ts";

export interface PackageServer {
  readonly origin: string;
  /** The paths of all requests so far. */
  readonly requests: string[];
  /** Files of a program that depends on the package. */
  readonly program: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

const name = "tiny";
const version = "1.0.0";
const tarball = `/${name}/-/${name}-${version}.tgz`;

export function servePackages(): PackageServer {
  const requests: string[] = [];
  const files = new Map<string, { readonly body: Uint8Array<ArrayBuffer> }>();
  const server = Bun.serve({
    hostname: machineAddress,
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      requests.push(pathname);
      const found = files.get(pathname);
      return found ? new Response(found.body) : new Response(null, { status: 404 });
    },
  });
  const origin = `http://${machineAddress}:${server.port}`;
  const content = packageWith(origin);
  const architecture = process.arch === "x64" ? "amd64" : "arm64";
  files.set(tarball, { body: content });
  files.set(`/pulumi-resource-${name}-v${version}-linux-${architecture}.tar.gz`, { body: plugin() });
  return { origin, requests, program: programWith(origin, content), stop: () => server.stop(true) };
}

/** Pulumi finds the plugins of a program in the manifests of its packages. */
function packageWith(origin: string): Uint8Array<ArrayBuffer> {
  const pulumi = { resource: true, name, version, server: origin };
  const manifest = JSON.stringify({ name, version, main: "index.js", pulumi });
  return Bun.gzipSync(
    tarOf([
      { path: "package/package.json", type: "0", body: manifest },
      { path: "package/index.js", type: "0", body: 'exports.text = "tiny";\n' },
    ]),
  );
}

/** Nothing starts it, because the program has none of its resources. */
const plugin = (): Uint8Array<ArrayBuffer> =>
  Bun.gzipSync(
    tarOf([{ path: `pulumi-resource-${name}`, type: "0", body: "#!/bin/sh\nexit 1\n", isExecutable: true }]),
  );

/** The SDK is in the image. */
function programWith(origin: string, content: Uint8Array): Record<string, string> {
  const dependencies = { [name]: version };
  const integrity = `sha512-${createHash("sha512").update(content).digest("base64")}`;
  const locked = { version, resolved: `${origin}${tarball}`, integrity };
  const lock = {
    name: "demo",
    lockfileVersion: 3,
    packages: { "": { dependencies }, [`node_modules/${name}`]: locked },
  };
  return {
    "Pulumi.yaml": "name: demo\nruntime: nodejs\n",
    "package.json": JSON.stringify({ name: "demo", main: "index.js", dependencies }),
    "package-lock.json": JSON.stringify(lock),
    "index.js": 'exports.text = require("tiny").text;\n',
  };
}
