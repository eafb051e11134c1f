/** Loaded by `bun test` before every run (bunfig.toml). */
import { afterAll } from "bun:test";

import { removePrograms } from "./program.ts";
import { stopSharedApiServer } from "./shared-api-server.ts";

afterAll(stopSharedApiServer, 30_000);
afterAll(removePrograms);
