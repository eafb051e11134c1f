/** Loaded by `bun test` before every run (bunfig.toml). */
import { afterAll } from "bun:test";

import { removePrograms } from "./program.ts";
import { stopShared } from "./shared.ts";

afterAll(stopShared, 30_000);
afterAll(removePrograms);
