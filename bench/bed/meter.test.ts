import { expect, test } from "bun:test";

import { parseProcesses } from "./meter.ts";

test("processes are assigned to pods by either format of the UID in the cgroup, without the pause process", () => {
  const output = [
    "d7aebb03-5d6e-4e0f-8a3c-0a6ac1a1f7b4 250 51200 15360 operator",
    "d7aebb03_5d6e_4e0f_8a3c_0a6ac1a1f7b5 0 1024 512 npm install",
    "d7aebb03-5d6e-4e0f-8a3c-0a6ac1a1f7b4 0 4 4 pause",
    "",
  ].join("\n");
  expect(parseProcesses(output)).toEqual([
    {
      podUid: "d7aebb03-5d6e-4e0f-8a3c-0a6ac1a1f7b4",
      name: "operator",
      residentMb: 50,
      anonymousMb: 15,
      cpuMs: 2500,
    },
    {
      podUid: "d7aebb03-5d6e-4e0f-8a3c-0a6ac1a1f7b5",
      name: "npm install",
      residentMb: 1,
      anonymousMb: 0.5,
      cpuMs: 0,
    },
  ]);
});

test("empty output contains no process", () => expect(parseProcesses("\n")).toEqual([]));
