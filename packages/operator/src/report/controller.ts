/** The report controller: it reports the results of Updates to the forge of their program. */
import { fieldManagers, type Stack, type Update } from "@pko/api";
import {
  controller,
  keyOf,
  metricsRegistry,
  reconciler,
  refKey,
  silentLogger,
  systemClock,
  watching,
  type Client,
  type Clock,
  type Controller,
  type EventRecorder,
  type Key,
  type Logger,
  type Moment,
  type Reflector,
  type Registry,
} from "@pko/kube";

import { ForgeLimits } from "../forge/forge-limits.ts";
import { openHttp, type ForgeSettings } from "../forge/open-http.ts";
import type { PolledObject, ReferencePoller } from "../inputs/reference-poller.ts";
import { updates as updateResource } from "../kinds.ts";
import { neverSuspended, type Suspension } from "../shared/channels/suspension.ts";
import { tracedLogKeys, updateLogKeys, type TraceIds } from "../shared/log-keys.ts";
import { reportSettings } from "../shared/reports.ts";
import { isReportDue, workspaceIndex } from "../shared/updates.ts";
import { classReader, classWatches, type ClassReflectors } from "../shared/workspace-classes.ts";
import type { GitHubAppTokens } from "../sources/github-app.ts";
import { reportEvents } from "./events.ts";
import { Lanes } from "./lanes.ts";
import { forgeLine, namesIn, observeReport, stacksConcernedBy } from "./observe.ts";
import type { Outcome } from "./outcome.ts";
import { performReport } from "./perform.ts";
import { planReport } from "./rules/index.ts";
import { reportStatus } from "./status.ts";
import type { ReportPlan, Step } from "./steps.ts";
import type { Answer, Delivered, ReportMemory, ReportView } from "./view.ts";

export interface ReportControllerOptions {
  /** Must be fenced. */
  readonly client: Client;
  readonly events: EventRecorder;
  /** With `updateIndexers`. */
  readonly updates: Reflector<Update>;
  /** With `previewIndexers`. */
  readonly stacks: Reflector<Stack>;
  readonly workspaceClasses: ClassReflectors | undefined;
  readonly suspension?: Suspension;
  /** Stopped by the caller. */
  readonly references: ReferencePoller;
  readonly githubApps: GitHubAppTokens;
  readonly http: ForgeSettings;
  /** Absent if traces are off. */
  readonly traces?: TraceIds | undefined;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

/** Requests to slow forges must not hold up those to others. */
const concurrency = 16;
/** A comment takes several requests. */
const deadlineMs = 120_000;

export function reportController(options: ReportControllerOptions): Controller {
  const { updates, stacks, workspaceClasses, suspension = neverSuspended } = options;
  const { log = silentLogger, metrics = metricsRegistry(), clock = systemClock } = options;
  const classes = classReader(workspaceClasses);
  /** Others are archived when everything is reported: to read all of them would take long. */
  const updatesOf = (stack: Stack): Key[] => {
    if (!reportSettings(stack, classes)) return [];
    const { namespace = "" } = stack.metadata;
    const named = namesIn(stack).map((name) => refKey({ namespace, name }));
    // The Stack no longer names a plan that is superseded. Its Workspace has the same name.
    const due = updates.store.activeByIndex(workspaceIndex, keyOf(stack)).filter((update) => isReportDue(update));
    return [...new Set([...named, ...due.map((update) => keyOf(update))])];
  };
  const ofStack = (key: Key): Key[] => {
    const stack = stacks.store.get(key);
    return stack ? updatesOf(stack) : [];
  };
  const memory = new Map<Key, ReportMemory>();
  const self: Controller = controller({
    name: "report-controller",
    // Its own objects are the Updates, but archived ones must not be enqueued when they expire.
    reflector: stacks,
    predicate: () => false,
    watches: [
      watching({ reflector: updates, map: ({ key }) => [key] }),
      watching({ reflector: stacks, map: (change) => stacksConcernedBy(stacks.store, change).flatMap(updatesOf) }),
      ...classWatches(workspaceClasses, stacks.store).map((watch) =>
        watching({ ...watch, map: (change) => Array.from(watch.map(change)).flatMap(ofStack) }),
      ),
    ],
    concurrency,
    deadlineMs,
    log,
    logKeys(name, _, key) {
      const update = updates.store.get(key);
      return { ...updateLogKeys(name, update), ...tracedLogKeys(options.traces, update) };
    },
    metrics,
    clock,
    reconcile: reportReconciler(options, { memory, classes, suspension, wake: (key) => self.enqueue(key) }),
    whileRunning: () =>
      suspension.follow(() => stacks.store.list().forEach((stack) => wakeAll(self, updatesOf(stack)))),
  });
  return self;
}

function wakeAll(self: Controller, keys: readonly Key[]): void {
  for (const key of keys) self.enqueue(key);
}

interface ReconcilerParts {
  readonly memory: Map<Key, ReportMemory>;
  readonly classes: ReturnType<typeof classReader>;
  readonly suspension: Suspension;
  readonly wake: (key: Key) => void;
}

function reportReconciler(options: ReportControllerOptions, { memory, classes, suspension, wake }: ReconcilerParts) {
  const { client, events, updates, stacks, references, githubApps, http } = options;
  const { metrics = metricsRegistry(), clock = systemClock } = options;
  const open = openHttp(http, () => clock.monotonic());
  const limits = new ForgeLimits(wake);
  const unrecorded = new Map<Key, Delivered>();
  const requests = metrics.counter({
    name: "report_requests_total",
    help: "Reports to forges, by result: delivered, unauthorized, notFound, rateLimited, invalid or unavailable.",
    labels: ["result"],
  });
  const count = (answer: Answer): void =>
    requests.increment({ result: answer.kind === "delivered" ? "delivered" : answer.error });
  const world = { updates: updates.store, stacks: stacks.store, classes, suspension, limits, unrecorded };
  const now = (): number => clock.monotonic();
  /** The forge may accept requests with new credentials. */
  const followSecret = (key: Key, secret: PolledObject, line: string): void =>
    references.follow(referenceUser(key), { objects: [secret], wake: () => retryNow(key, line) });
  const tools = { client, githubApps, limits, lanes: new Lanes(), open, now, unrecorded, followSecret, count };
  return reconciler<Update, ReportView, Step, Outcome, ReportMemory>({
    resource: updateResource,
    client,
    events,
    fieldManager: fieldManagers.reportStatus,
    memory,
    quietSteps,
    observe: (key, moment) => observeReport(world, key, moment),
    objectIn: ({ update }) => update,
    plan: planReport,
    perform: (step, context) => performReport(tools, step, context),
    status: reportStatus,
    eventsOf: reportEvents,
    remember,
    publish(key, { view, plan }) {
      const { access, subject } = view;
      const line = subject ? forgeLine(subject.stack, subject.target.url) : "";
      if (plan.outcome.kind === "waiting") return limits.wait(line, key);
      if (plan.outcome.kind === "resting") return limits.rest(line, key);
      limits.leave(key);
      if (plan.outcome.kind !== "unchanged") unrecorded.delete(key);
      if (plan.outcome.kind === "reported") references.forget(referenceUser(key));
      if (plan.outcome.kind === "failed" && access) followSecret(key, access.secret, line);
    },
    cleanUp(key) {
      limits.leave(key);
      unrecorded.delete(key);
      references.forget(referenceUser(key));
    },
  });

  function retryNow(key: Key, line: string): void {
    memory.delete(key);
    limits.endRest(line);
    wake(key);
  }
}

const quietSteps: ReadonlySet<Step["kind"]> = new Set<Step["kind"]>(["readCredentials", "readDetails"]);

/** A pass that waits keeps what it knows. */
function remember(
  view: ReportView,
  { outcome, requeueAt = view.now }: ReportPlan,
  { monotonic, memory }: Moment<ReportMemory>,
): ReportMemory | undefined {
  switch (outcome.kind) {
    case "reported":
    case "superseded":
      return undefined;
    case "unchanged":
    case "waiting":
    case "resting":
    case "due":
      return memory;
    case "failed":
      return { failures: (memory?.failures ?? 0) + 1, retryAt: monotonic + (requeueAt - view.now) };
  }
}

const referenceUser = (key: Key): string => `report/${key}`;
