import { expect, test } from "bun:test";

import { countRequests } from "./requests.ts";

test("only requests of our flow schema are counted, on all priority levels", () => {
  const metrics = [
    'apiserver_flowcontrol_dispatched_requests_total{flow_schema="pulumi-bench",priority_level="workload-low"} 1.5e+02',
    'apiserver_flowcontrol_dispatched_requests_total{flow_schema="pulumi-bench",priority_level="other"} 2',
    'apiserver_flowcontrol_dispatched_requests_total{flow_schema="exempt",priority_level="exempt"} 999',
    'apiserver_flowcontrol_current_executing_requests{flow_schema="pulumi-bench",priority_level="workload-low"} 7',
  ].join("\n");
  expect(countRequests(metrics)).toBe(152);
});
