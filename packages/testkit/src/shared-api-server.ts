import { startApiServer } from "./api-server.ts";
import { shared } from "./shared.ts";

/** The API server that all tests of a process share. */
export const sharedApiServer = shared(startApiServer, (server) => server.stop());
