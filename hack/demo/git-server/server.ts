/**
 * A Git server for the tour of `make demo`. It runs in the workspace image, with its Node.js, git and openssl, and serves
 * the repository `shop` in the working directory over HTTPS, for reading.
 */
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { createGunzip } from "node:zlib";

const { CERTIFICATE = "", KEY = "", POD_IP = "", PORT = "", PROJECT = "" } = process.env;

function run(program: string, ...args: string[]): void {
  execFileSync(program, args, { stdio: "inherit" });
}

// A directory of its own: git rejects one that belongs to another user, such as the volume.
mkdirSync("shop");
process.chdir("shop");
copyFileSync(PROJECT, "Pulumi.yaml");
run("git", "init", "--quiet", "--initial-branch=main");
run("git", "add", "Pulumi.yaml");
run("git", "commit", "--message=Sell apples");

const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", KEY];
const names = ["-subj", "/CN=git-server", "-addext", `subjectAltName=IP:${POD_IP}`];
run("openssl", "req", "-x509", ...key, "-out", CERTIFICATE, "-days", "30", ...names);

/** Git's smart HTTP protocol: GET lists the refs, POST fetches commits. */
function serve(request: IncomingMessage, response: ServerResponse): void {
  const isList = request.method === "GET";
  response.setHeader("content-type", `application/x-git-upload-pack-${isList ? "advertisement" : "result"}`);
  if (isList) response.write("001e# service=git-upload-pack\n0000");
  const args = ["upload-pack", "--stateless-rpc", ...(isList ? ["--http-backend-info-refs"] : []), "."];
  const env = { ...process.env, GIT_PROTOCOL: String(request.headers["git-protocol"] ?? "") };
  const git = spawn("git", args, { env, stdio: ["pipe", "pipe", "inherit"] });
  // git may end without reading all of the request.
  git.stdin.on("error", () => undefined);
  const isCompressed = request.headers["content-encoding"] === "gzip";
  (isCompressed ? request.pipe(createGunzip()) : request).pipe(git.stdin);
  git.stdout.pipe(response);
}

createServer({ key: readFileSync(KEY), cert: readFileSync(CERTIFICATE) }, serve).listen(Number(PORT));
// The first process of a container ignores signals that it does not handle.
process.once("SIGTERM", () => process.exit());
