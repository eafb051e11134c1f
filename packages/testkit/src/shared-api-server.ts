/** The API server that all tests of a run share: started by the first test that needs it, stopped by preload.ts. */
import { startApiServer, type ApiServer } from "./api-server.ts";

let shared: Promise<ApiServer> | undefined;

export async function sharedApiServer(): Promise<ApiServer> {
  shared ??= startApiServer();
  return await shared;
}

export async function stopSharedApiServer(): Promise<void> {
  const server = await shared?.catch(() => undefined);
  shared = undefined;
  await server?.stop();
}
