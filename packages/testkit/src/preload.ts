/** Loaded by `bun test` before every run (bunfig.toml). */
import { afterAll } from "bun:test";

import { stopSharedApiServer } from "./shared-api-server.ts";

afterAll(stopSharedApiServer, 30_000);
