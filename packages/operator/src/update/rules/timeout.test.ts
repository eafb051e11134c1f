import {
  endsRecorded,
  hour,
  matching,
  minute,
  progressAt,
  progresses,
  runningStatus,
  started,
  table,
  writesNothing,
} from "../testing/plans.ts";
import {
  at,
  deletedAgo,
  finished,
  noon,
  noPod,
  podOverdue,
  refused,
  run,
  running,
  withSpec,
  withStatus,
} from "../testing/views.ts";

const unreachable = run({ state: "unreachable", message: "timeout", sinceMs: noon - hour });
const silent = run(running({ created: 1 }));
/** Of one minute; the agent has 15 more to stop the operation. */
const timeout = withSpec({ timeoutSeconds: 60 });
const startedAgo = (ms: number) => withStatus({ startTime: at(-ms) });

const isNotStopped = { steps: [], conditions: { Progressing: "True/TransientFailure", Stalled: "True/NotStopped" } };

table("an Update that should have been stopped", [
  [
    "is stalled with the fix in its message, and an event",
    [...started, timeout, startedAgo(16 * minute), silent],
    {
      ...isNotStopped,
      events: [
        {
          type: "Warning",
          reason: "NotStopped",
          message: matching(/timeout of 60 seconds.*To end it, run: kubectl delete pod web-workspace-0 -n default$/),
        },
      ],
    },
  ],
  [
    "is stalled even if its agent cannot be reached",
    [...started, timeout, startedAgo(hour), unreachable],
    isNotStopped,
  ],
  [
    "is stalled even if its agent has not responded yet",
    [...started, timeout, startedAgo(hour), run({ state: "starting" })],
    isNotStopped,
  ],
  [
    "is not stalled while the agent has time, and is requeued for it",
    [...started, timeout, startedAgo(15 * minute), unreachable],
    { ...progresses("TransientFailure"), requeueAt: noon + minute },
  ],
  [
    "is followed first, after a restart of the operator",
    [...started, timeout, startedAgo(hour)],
    { steps: [{ kind: "followRun" }] },
  ],
  [
    "is not stalled if it has not begun",
    [...started, timeout, startedAgo(hour), run(refused("busy"))],
    progresses("WorkspaceNotReady"),
  ],
  [
    "is requeued earlier if its next progress report is due",
    [...started, timeout, withStatus({ ...runningStatus(progressAt(-1_000, 0)), startTime: at(-minute) }), silent],
    { ...writesNothing, requeueAt: noon + 2_000 },
  ],
  [
    "is neither stalled nor requeued without a timeout",
    [...started, startedAgo(hour), silent],
    { ...progresses("Progressing"), requeueAt: undefined },
  ],
  [
    "is not stalled by the silence timeout, which only the agent can measure",
    [...started, withSpec({ silenceTimeoutSeconds: 1 }), startedAgo(hour), silent],
    progresses("Progressing"),
  ],
  [
    "reports a lost node first",
    [...started, timeout, startedAgo(hour), podOverdue(hour), unreachable],
    { conditions: { Stalled: "True/NodeLost" } },
  ],
  [
    "ends with the result of the agent",
    [...started, timeout, startedAgo(hour), run(finished())],
    { conditions: { Complete: "True/Updated" } },
  ],
  [
    "ends when its pod is deleted",
    [...started, timeout, startedAgo(hour), noPod, unreachable],
    endsRecorded("Aborted", "confirmPodDeleted"),
  ],
  [
    "is cancelled when it is deleted",
    [...started, timeout, startedAgo(hour), deletedAgo(minute), silent],
    { steps: [{ kind: "cancelRun" }] },
  ],
]);
