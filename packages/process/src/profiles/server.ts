/**
 * Serves profiles on a Unix socket in a folder that only this user can open. In a pod, this needs the permission to run
 * commands in the container, and who has it could also read the process's memory. No network reaches the socket.
 */
import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { cpuProfile, heapSnapshot } from "./profiles.ts";

export interface ProfileServer {
  stop(): void;
}

/** Where the process with this ID serves its profiles. */
export const profileSocket = (pid: number): string => join(tmpdir(), `profiles-${pid}`, "socket");

export const maxProfileSeconds = 300;

/** Throws if the socket cannot be created. */
export function serveProfiles(pid = process.pid): ProfileServer {
  const socket = profileSocket(pid);
  const folder = dirname(socket);
  // Of an earlier process with the same ID.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  let isRecording = false;
  const recordCpu = async (seconds: number): Promise<Response> => {
    if (isRecording) return new Response("another CPU profile is being recorded\n", { status: 409 });
    isRecording = true;
    try {
      return new Response(await cpuProfile(sleep(seconds * 1000)));
    } finally {
      isRecording = false;
    }
  };
  const server = Bun.serve({
    unix: socket,
    routes: {
      "/heap": () => new Response(heapSnapshot()),
      "/cpu": (request, server) => {
        // Nothing is sent while it is recorded.
        server.timeout(request, 0);
        const seconds = Number(new URL(request.url).searchParams.get("seconds"));
        return seconds > 0 && seconds <= maxProfileSeconds
          ? recordCpu(seconds)
          : new Response(`seconds must be between 1 and ${maxProfileSeconds}\n`, { status: 400 });
      },
    },
    fetch: () => new Response("not found\n", { status: 404 }),
  });
  return {
    stop() {
      void server.stop(true);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
