/** A new commit: how long until the operator finds it by polling, with a reconciliation request, and with a webhook. */
import { openReceiver } from "../bed/receiver.ts";
import { openRepository, type Repository } from "../bed/repository.ts";
import { figure, type Figure, type Findings } from "../report/figures.ts";
import type { Context, Scenario } from "./scenario.ts";

/** The shortest polling interval of operators of this API. */
const pollSeconds = 60;

export const commit: Scenario = {
  name: "commit",
  title: "new commits",
  async run(context) {
    const repository = await openRepository(context.options.gitUrl);
    if (typeof repository === "string") return { figures: [], skipped: [{ title: commit.title, reason: repository }] };
    try {
      return await follow(context, repository);
    } finally {
      await repository.stop();
    }
  },
};

async function follow(context: Context, repository: Repository): Promise<Findings> {
  const { bed, sizes, report } = context;
  const names = Array.from({ length: sizes.branches }, () => bed.newName("commit"));
  report(`deploying ${names.length} branches`);
  for (const name of names) {
    await repository.push(name, "one");
    const source = { projectRepo: repository.url, branch: name, resyncFrequencySeconds: pollSeconds };
    await bed.create({ name, source, value: "red" });
  }
  for (const name of names) await bed.succeeded(name, { text: "one" });

  report(`a commit to each, found within ${pollSeconds} s`);
  const found = await Promise.all(names.map((name, index) => pushed({ context, repository, name, index })));

  const requested: number[] = [];
  const bare: number[] = [];
  for (let round = 1; round <= sizes.rounds; round += 1) {
    report(`with a reconciliation request: ${round} of ${sizes.rounds}`);
    bare.push((await bed.yardstick.measure()).upMs);
    requested.push(await pushedWithRequest({ context, repository, name: names[0] ?? "", index: round }));
  }
  const reported = await withWebhooks({ context, repository, name: names[0] ?? "", index: 0 });
  await bed.remove(...names);
  const note = `found by polling every ${pollSeconds} s; pushed at times spread over the interval`;
  return {
    figures: [
      ...figure(
        { id: "commit.update", title: "commit pushed → Update created", unit: "ms", note },
        found.map(({ updateMs }) => updateMs),
      ),
      ...figure(
        { id: "commit.succeeded", title: "Update created → succeeded", unit: "ms" },
        found.map(({ succeededMs, updateMs }) => succeededMs - updateMs),
      ),
      ...figure(
        { id: "commit.requested", title: "commit pushed, update requested → succeeded", unit: "ms" },
        requested,
        bare,
      ),
      ...reported,
    ],
  };
}

/** Nothing for an operator without webhooks. */
async function withWebhooks({ context, repository, name }: Push): Promise<readonly Figure[]> {
  const { bed, operator, sizes, report } = context;
  const sender = await openReceiver(bed, operator);
  if (!sender) return [];
  const made: number[] = [];
  const succeeded: number[] = [];
  for (let round = 1; round <= sizes.rounds; round += 1) {
    report(`with a webhook: ${round} of ${sizes.rounds}`);
    const text = `reported ${round}`;
    const before = new Set(updateUids(context, name));
    await repository.push(name, text);
    // A repository is polled at most once a second, whatever webhooks report.
    await Bun.sleep(1500);
    const begin = performance.now();
    await sender.report(repository.url, name);
    made.push((await nextUpdate(context, name, before)) - begin);
    succeeded.push((await bed.succeeded(name, { text })) - begin);
  }
  return [
    ...figure({ id: "commit.webhook.update", title: "commit pushed, webhook → Update created", unit: "ms" }, made),
    ...figure({ id: "commit.webhook", title: "commit pushed, webhook → succeeded", unit: "ms" }, succeeded),
  ];
}

/** When an Update appears that did not exist before. */
async function nextUpdate(context: Context, name: string, before: ReadonlySet<string>): Promise<number> {
  const isThere = (): boolean => updateUids(context, name).some((uid) => !before.has(uid));
  const what = `an Update for the new commit of ${name}`;
  return (await context.bed.watch.until(isThere, { timeoutMs: pollSeconds * 3000, what })).at;
}

interface Push {
  readonly context: Context;
  readonly repository: Repository;
  readonly name: string;
  readonly index: number;
}

/** One push at a time, because they share a working copy. */
let turn: Promise<unknown> = Promise.resolve();

async function pushed({ context, repository, name, index }: Push): Promise<{ updateMs: number; succeededMs: number }> {
  const { bed, sizes } = context;
  await Bun.sleep((index * pollSeconds * 1000) / sizes.branches);
  const before = new Set(updateUids(context, name));
  const mine = turn.then(() => repository.push(name, "two"));
  turn = mine;
  await mine;
  const begin = performance.now();
  const made = await nextUpdate(context, name, before);
  const end = await bed.succeeded(name, { text: "two" });
  return { updateMs: made - begin, succeededMs: end - begin };
}

function updateUids({ bed }: Context, name: string): string[] {
  const stack = bed.watch.stack(name);
  return stack ? bed.watch.updatesOf(stack).map(({ metadata }) => metadata.uid ?? "") : [];
}

async function pushedWithRequest({ context, repository, name, index }: Push): Promise<number> {
  const text = `requested ${index}`;
  await repository.push(name, text);
  const begin = performance.now();
  await context.bed.request(name, crypto.randomUUID());
  return (await context.bed.succeeded(name, { text })) - begin;
}
