/** Loaded by `bun test` before every run (bunfig.toml). */
import { afterAll, setDefaultTimeout } from "bun:test";

import { stopSharedApiServer } from "./shared-api-server.ts";

// The first test of a run that needs the API server waits for its start, on a machine that may be busy.
setDefaultTimeout(60_000);

afterAll(stopSharedApiServer, 30_000);
