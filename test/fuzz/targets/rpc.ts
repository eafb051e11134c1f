/** Messages between operator and agent: a workspace runs programs of tenants, so its agent may send anything. */
import type { TSchema } from "typebox";

import { calls, parseRequest, streams } from "@pko/rpc";

import { readAnswer, readError, readFrame, type Call, type Stream } from "../../../packages/rpc/src/answers.ts";
import { PrepareRequestV1, StartRequestV1 } from "../../../packages/rpc/src/versions/v1.ts";
import { prepareFromV1 } from "../../../packages/rpc/src/versions/versions.ts";
import { hold, secret, textOf, type Target } from "../engine/target.ts";

const requests = [...Object.values(calls), ...Object.values(streams)].map(({ request }) => request);

function check(input: Uint8Array): void {
  const text = textOf(input);
  for (const schema of [...requests, StartRequestV1]) {
    const parsed = parseRequest(schema, text);
    if (!parsed.ok) checkProblem(parsed.problem);
  }
  const old = parseRequest(PrepareRequestV1, text);
  if (old.ok) prepareFromV1(old.value);
  for (const call of Object.values<Call<TSchema>>(calls)) {
    const answer = readAnswer(call, text);
    if (!answer.ok) checkProblem(answer.problem);
  }
  for (const stream of Object.values<Stream<TSchema>>(streams)) {
    const item = readFrame(stream, text);
    if (item.type === "ended" && item.error) checkProblem(item.error.code === "protocol" ? item.error.message : "");
  }
  for (const status of [400, 413, 500]) hold(readError("start", status, text).code.length > 0, "an error has a code");
}

function checkProblem(problem: string): void {
  hold(!problem.includes(secret), "a problem contains no value");
  hold(problem.length < 1000, "a problem is short");
}

const frame = (message: object): string => JSON.stringify({ frame: "message", message });

export const rpcTarget: Target = {
  name: "rpc",
  form: "json",
  seeds: [
    frame({ type: "event", seq: 1, time: "2030-01-01T00:00:00Z", event: { kind: "step", name: "up" } }),
    frame({ type: "phase", phase: "source" }),
    frame({ type: "done", result: { failure: { reason: "other", phase: "source", message: "m", lines: [] } } }),
    frame({ type: "output", output: { name: "a", secret: false, known: true, value: { b: [1] } } }),
    frame({ type: "part", content: "AAAA" }),
    frame({
      type: "result",
      result: { outcome: "failed", operation: "up", error: { class: "other", message: "m", lines: [] } },
    }),
    '{"frame":"heartbeat"}',
    '{"frame":"error","error":{"code":"internal","message":"m"}}',
    '{"error":{"code":"busy","message":"m"}}',
    '{"runId":"a","operation":{"kind":"up"},"stack":"dev","fromSeq":1}',
    '{"source":{"kind":"git","url":"https://x/y","ref":{"kind":"branch","name":"main"}},"stack":{"name":"dev","create":true,"config":[]},"env":{}}',
    '{"state":"running","protocol":{"min":1,"max":2}}',
  ],
  rounds: 1500,
  check,
};
