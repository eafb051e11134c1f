import { expect, test } from "bun:test";

import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { logEvent } from "./run-log.ts";

test("a policy violation is a warning that names its enforcement level", () => {
  const lines: string[] = [];
  const log = createLog(new Redactor(), (line) => lines.push(line));
  const violation = {
    kind: "policy",
    policy: "no-public-buckets",
    level: "mandatory",
    message: "bucket is public",
  } as const;
  logEvent(log, "run-1", violation);
  expect(JSON.parse(lines.join(""))).toMatchObject({
    level: "warn",
    message: "policy violated",
    policy: "no-public-buckets",
    enforcement: "mandatory",
    text: "bucket is public",
  });
});
