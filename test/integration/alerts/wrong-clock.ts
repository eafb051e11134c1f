/** Loaded before the operator: its clock is slow while the file exists that `WRONG_CLOCK` names. Its certificates become too old. */
import { existsSync } from "node:fs";

const file = process.env["WRONG_CLOCK"] ?? "";
const slowMs = 200 * 86_400_000;
const { now } = Date;
Date.now = () => (existsSync(file) ? now() - slowMs : now());
