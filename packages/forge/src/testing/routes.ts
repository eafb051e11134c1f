/** The routes of each forge: paths, status codes, fields and pages. */
import type { PullRequest } from "../types.ts";

export interface StandInStatus {
  readonly commit: string;
  readonly context: string;
  /** In the forge's words. */
  readonly state: string;
  readonly description: string;
  readonly url: string | undefined;
}

interface StoredComment {
  id: number;
  body: string;
  version: number;
}

/** What the server stores. */
export interface Content {
  readonly origin: string;
  readonly url: string;
  readonly repository: string;
  readonly statuses: StandInStatus[];
  readonly comments: Map<number, StoredComment[]>;
  readonly pullRequests: readonly PullRequest[];
  readonly closedPullRequests: readonly PullRequest[];
  readonly missingCommits: ReadonlySet<string>;
  readonly foreignComments: ReadonlySet<number>;
  readonly pageSize: number;
  nextId(): number;
}

interface Call {
  readonly content: Content;
  /** The groups of the path. */
  readonly parameters: readonly string[];
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Route {
  readonly method: string;
  /** A pattern, in which {repository} stands for that of the test. */
  readonly path: string;
  readonly handle: (call: Call) => Response;
}

const route = (method: string, path: string, handle: Route["handle"]): Route => ({ method, path, handle });
const notFound = (): Response => Response.json({ message: "Not Found" }, { status: 404 });
const invalid = (message: string, status = 422): Response => Response.json({ message }, { status });
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const optionalText = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const commentsOf = ({ comments }: Content, number: number): StoredComment[] => comments.get(number) ?? [];

/** Creates a comment if the pull request exists. */
function addComment(content: Content, number: number, body: string): StoredComment | undefined {
  if (!content.pullRequests.some((each) => each.number === number)) return undefined;
  const comment = { id: content.nextId(), body, version: 0 };
  content.comments.set(number, [...commentsOf(content, number), comment]);
  return comment;
}

interface Replacement {
  readonly id: string | undefined;
  readonly body: string;
  /** The answer of the forge. */
  readonly show: (comment: StoredComment) => unknown;
  /** If the comment is that of another user. */
  readonly refusal?: number;
}

function replaceComment(content: Content, { id, body, show, refusal = 403 }: Replacement): Response {
  const found = [...content.comments.values()].flat().find((comment) => comment.id === Number(id));
  if (!found) return notFound();
  if (content.foreignComments.has(found.id)) return invalid("The comment is not yours", refusal);
  found.body = body;
  found.version += 1;
  return Response.json(show(found));
}

/** A page by number, with a Link header if there are more. */
function linked(entries: readonly unknown[], { content, query }: Call, path: string): Response {
  const page = Number(query.get("page") ?? "1");
  const { pageSize, url } = content;
  const rest = new URLSearchParams(query);
  rest.set("page", String(page + 1));
  const link = `<${url}${path}?${rest.toString()}>; rel="next", <${url}${path}?page=1>; rel="first"`;
  const hasMore = entries.length > page * pageSize;
  const body = entries.slice((page - 1) * pageSize, page * pageSize);
  return Response.json(body, hasMore ? { headers: { link } } : {});
}

const githubStates = new Set(["error", "failure", "pending", "success"]);

function githubStatus({ content, parameters: [commit = ""], body }: Call): Response {
  const [context, state, description] = [text(body["context"]), text(body["state"]), text(body["description"])];
  if (content.missingCommits.has(commit)) return invalid(`No commit found for SHA: ${commit}`);
  if (!githubStates.has(state)) return invalid("state is not included in the list");
  if (description.length > 140) return invalid("description is too long (maximum is 140 characters)");
  content.statuses.push({ commit, context, state, description, url: optionalText(body["target_url"]) });
  return Response.json({ context, state }, { status: 201 });
}

/** One pull request, open or closed. `states`: what the forge calls them. */
function onePullRequest(
  { content, parameters }: Call,
  show: (pull: PullRequest) => object,
  states: { readonly open: string; readonly closed: string },
): Response {
  const number = Number(parameters[0]);
  const [open, closed] = [content.pullRequests, content.closedPullRequests].map((pulls) =>
    pulls.find((pull) => pull.number === number),
  );
  const found = open ?? closed;
  return found ? Response.json({ ...show(found), state: open ? states.open : states.closed }) : notFound();
}

const githubPull = (pull: PullRequest) => ({
  number: pull.number,
  title: pull.title,
  html_url: pull.url,
  draft: pull.isDraft,
  labels: pull.labels.map((name) => ({ name })),
  head: { ref: pull.head.ref, sha: pull.head.commit, repo: pull.isFork ? { id: 2 } : { id: 1 } },
  base: { ref: pull.base.ref, repo: { id: 1 } },
});

const issueBody = ({ id, body }: StoredComment) => ({ id, body, user: { login: "bot" } });

function githubComments(isPaged: boolean): Route[] {
  return [
    route("GET", "/repos/{repository}/issues/(\\d+)/comments", (call) => {
      const { content, parameters } = call;
      const entries = commentsOf(content, Number(parameters[0])).map((comment) => issueBody(comment));
      const path = `/repos/${content.repository}/issues/${parameters[0]}/comments`;
      return isPaged ? linked(entries, call, path) : Response.json(entries);
    }),
    route("POST", "/repos/{repository}/issues/(\\d+)/comments", ({ content, parameters, body }) => {
      if (text(body["body"]).length > 65_536) return invalid("body is too long (maximum is 65536 characters)");
      const added = addComment(content, Number(parameters[0]), text(body["body"]));
      return added ? Response.json(issueBody(added), { status: 201 }) : notFound();
    }),
    route("PATCH", "/repos/{repository}/issues/comments/(\\d+)", ({ content, parameters: [id], body }) =>
      replaceComment(content, { id, body: text(body["body"]), show: issueBody }),
    ),
  ];
}

const githubPulls: readonly Route[] = [
  route("GET", "/repos/{repository}/pulls", (call) =>
    linked(
      call.content.pullRequests.map((pull) => githubPull(pull)),
      call,
      `/repos/${call.content.repository}/pulls`,
    ),
  ),
  route("GET", "/repos/{repository}/pulls/(\\d+)", (call) =>
    onePullRequest(call, githubPull, { open: "open", closed: "closed" }),
  ),
];

export const githubRoutes: readonly Route[] = [
  route("POST", "/repos/{repository}/statuses/([0-9a-f]+)", githubStatus),
  ...githubPulls,
  ...githubComments(true),
];

/** Gitea returns all comments at once. */
export const giteaRoutes: readonly Route[] = [
  route("POST", "/repos/{repository}/statuses/([0-9a-f]+)", githubStatus),
  ...githubPulls,
  ...githubComments(false),
];

const gitlabNote = ({ id, body }: StoredComment) => ({ id, body, system: false });

const gitlabMergeRequest = (pull: PullRequest) => ({
  iid: pull.number,
  title: pull.title,
  web_url: pull.url,
  source_branch: pull.head.ref,
  target_branch: pull.base.ref,
  sha: pull.head.commit,
  labels: pull.labels,
  draft: pull.isDraft,
  source_project_id: pull.isFork ? 2 : 1,
  target_project_id: 1,
});

/** What GitLab calls the transitions to these states. */
const gitlabEvents: Readonly<Record<string, string>> = {
  pending: "enqueue",
  running: "run",
  success: "success",
  failed: "drop",
};

export const gitlabRoutes: readonly Route[] = [
  route("POST", "/projects/{repository}/statuses/([0-9a-f]+)", ({ content, parameters: [commit = ""], body }) => {
    const [context, state, description] = [text(body["name"]), text(body["state"]), text(body["description"])];
    if (content.missingCommits.has(commit)) return notFound();
    const current = content.statuses.findLast((each) => each.commit === commit && each.context === context);
    if (current && (current.state === state || (current.state === "running" && state === "pending"))) {
      return invalid(
        `Cannot transition status via :${gitlabEvents[state] ?? state} from :${current.state} (Reason(s): Status cannot transition)`,
        400,
      );
    }
    content.statuses.push({ commit, context, state, description, url: optionalText(body["target_url"]) });
    return Response.json({ name: context, status: state }, { status: 201 });
  }),
  route("GET", "/projects/{repository}/repository/commits/([0-9a-f]+)/statuses", ({ content, parameters, query }) => {
    const found = content.statuses.findLast(
      ({ commit, context }) => commit === parameters[0] && context === query.get("name"),
    );
    return Response.json(found ? [{ name: found.context, status: found.state }] : []);
  }),
  route("GET", "/projects/{repository}/merge_requests", (call) => {
    const entries = call.content.pullRequests.map((pull) => gitlabMergeRequest(pull));
    return linked(entries, call, `/projects/${encodeURIComponent(call.content.repository)}/merge_requests`);
  }),
  route("GET", "/projects/{repository}/merge_requests/(\\d+)", (call) =>
    onePullRequest(call, gitlabMergeRequest, { open: "opened", closed: "merged" }),
  ),
  route("GET", "/projects/{repository}/merge_requests/(\\d+)/notes", (call) => {
    const number = Number(call.parameters[0]);
    const path = `/projects/${encodeURIComponent(call.content.repository)}/merge_requests/${number}/notes`;
    const entries = commentsOf(call.content, number).map((comment) => gitlabNote(comment));
    return linked(entries, call, path);
  }),
  route("POST", "/projects/{repository}/merge_requests/(\\d+)/notes", ({ content, parameters, body }) => {
    const added = addComment(content, Number(parameters[0]), text(body["body"]));
    return added ? Response.json(gitlabNote(added), { status: 201 }) : notFound();
  }),
  route("PUT", "/projects/{repository}/merge_requests/\\d+/notes/(\\d+)", ({ content, parameters: [id], body }) =>
    replaceComment(content, { id, body: text(body["body"]), show: gitlabNote }),
  ),
];

const bitbucketStateNames = new Set(["INPROGRESS", "SUCCESSFUL", "FAILED"]);

function bitbucketStatus(maxKey: number, success: number): Route["handle"] {
  return ({ content, parameters: [commit = ""], body }) => {
    const [key, state, url] = [text(body["key"]), text(body["state"]), optionalText(body["url"])];
    if (content.missingCommits.has(commit)) return notFound();
    if (url === undefined || !bitbucketStateNames.has(state) || key === "" || key.length > maxKey) {
      return invalid("Bad request", 400);
    }
    const [context, description] = [text(body["name"]), text(body["description"])];
    content.statuses.push({ commit, context, state, description, url });
    return success === 204 ? new Response(null, { status: 204 }) : Response.json({ key, state }, { status: success });
  };
}

/** Bitbucket Cloud: the next page is a URL in the body. */
function nextPage(entries: readonly unknown[], { content, query }: Call, path: string): Response {
  const page = Number(query.get("page") ?? "1");
  const { pageSize, url } = content;
  const rest = new URLSearchParams(query);
  rest.set("page", String(page + 1));
  const values = entries.slice((page - 1) * pageSize, page * pageSize);
  const next = entries.length > page * pageSize ? { next: `${url}${path}?${rest.toString()}` } : {};
  return Response.json({ values, page, ...next });
}

const cloudComment = ({ id, body }: StoredComment) => ({ id, content: { raw: body }, deleted: false });
const cloudBody = (body: Readonly<Record<string, unknown>>): string =>
  text((body["content"] as { raw?: unknown } | undefined)?.raw);

const cloudPullRequest = (pull: PullRequest, repository: string) => ({
  id: pull.number,
  title: pull.title,
  draft: pull.isDraft,
  links: { html: { href: pull.url } },
  source: {
    branch: { name: pull.head.ref },
    commit: { hash: pull.head.commit.slice(0, 12) },
    repository: { full_name: pull.isFork ? (pull.head.repository ?? "someone/fork") : repository },
  },
  destination: { branch: { name: pull.base.ref }, repository: { full_name: repository } },
});

export const bitbucketRoutes: readonly Route[] = [
  route("POST", "/repositories/{repository}/commit/([0-9a-f]+)/statuses/build", bitbucketStatus(40, 201)),
  route("GET", "/repositories/{repository}/commit/([0-9a-f]+)", ({ content, parameters: [short = ""] }) => {
    const found = content.pullRequests.find(({ head, isFork }) => !isFork && head.commit.startsWith(short));
    return found && !content.missingCommits.has(found.head.commit)
      ? Response.json({ hash: found.head.commit })
      : notFound();
  }),
  route("GET", "/repositories/{repository}/pullrequests", (call) => {
    const { repository, pullRequests } = call.content;
    const entries = pullRequests.map((pull) => cloudPullRequest(pull, repository));
    return nextPage(entries, call, `/repositories/${repository}/pullrequests`);
  }),
  route("GET", "/repositories/{repository}/pullrequests/(\\d+)", (call) =>
    onePullRequest(call, (pull) => cloudPullRequest(pull, call.content.repository), { open: "OPEN", closed: "MERGED" }),
  ),
  route("GET", "/repositories/{repository}/pullrequests/(\\d+)/commits", ({ content, parameters }) => {
    const found = content.pullRequests.find(({ number }) => number === Number(parameters[0]));
    return found && !content.missingCommits.has(found.head.commit)
      ? Response.json({ values: [{ hash: found.head.commit }, { hash: "e".repeat(40) }] })
      : notFound();
  }),
  route("GET", "/repositories/{repository}/pullrequests/(\\d+)/comments", (call) => {
    const number = Number(call.parameters[0]);
    const entries = commentsOf(call.content, number).map((comment) => cloudComment(comment));
    return nextPage(entries, call, `/repositories/${call.content.repository}/pullrequests/${number}/comments`);
  }),
  route("POST", "/repositories/{repository}/pullrequests/(\\d+)/comments", ({ content, parameters, body }) => {
    const added = addComment(content, Number(parameters[0]), cloudBody(body));
    return added ? Response.json(cloudComment(added), { status: 201 }) : notFound();
  }),
  route("PUT", "/repositories/{repository}/pullrequests/\\d+/comments/(\\d+)", ({ content, parameters: [id], body }) =>
    replaceComment(content, { id, body: cloudBody(body), show: cloudComment }),
  ),
];

/** Bitbucket Data Center: the next page starts at an index. */
function pageFrom(entries: readonly unknown[], { content, query }: Call): Response {
  const start = Number(query.get("start") ?? "0");
  const end = start + content.pageSize;
  const isLastPage = end >= entries.length;
  const values = entries.slice(start, end);
  return Response.json({ values, isLastPage, start, nextPageStart: isLastPage ? null : end });
}

const serverComment = ({ id, body, version }: StoredComment) => ({ id, version, text: body });

function serverPullRequest(pull: PullRequest, repository: string) {
  const [key, slug] = repository.split("/");
  return {
    id: pull.number,
    title: pull.title,
    draft: pull.isDraft,
    links: { self: [{ href: pull.url }] },
    fromRef: {
      id: `refs/heads/${pull.head.ref}`,
      latestCommit: pull.head.commit,
      repository: { slug, project: { key: pull.isFork ? "~someone" : key } },
    },
    toRef: { id: `refs/heads/${pull.base.ref}`, repository: { slug, project: { key } } },
  };
}

export const bitbucketDataCenterRoutes: readonly Route[] = [
  route("POST", "/api/1.0/projects/{repository}/commits/([0-9a-f]+)/builds", bitbucketStatus(255, 204)),
  route("GET", "/api/1.0/projects/{repository}/pull-requests", (call) => {
    const entries = call.content.pullRequests.map((pull) => serverPullRequest(pull, call.content.repository));
    return pageFrom(entries, call);
  }),
  route("GET", "/api/1.0/projects/{repository}/pull-requests/(\\d+)", (call) =>
    onePullRequest(call, (pull) => serverPullRequest(pull, call.content.repository), {
      open: "OPEN",
      closed: "MERGED",
    }),
  ),
  route("GET", "/api/1.0/projects/{repository}/pull-requests/(\\d+)/activities", (call) => {
    const comments = commentsOf(call.content, Number(call.parameters[0]));
    const activities = comments.map((comment) => ({ action: "COMMENTED", comment: serverComment(comment) }));
    return pageFrom([{ action: "APPROVED" }, ...activities.toReversed(), { action: "OPENED" }], call);
  }),
  route("POST", "/api/1.0/projects/{repository}/pull-requests/(\\d+)/comments", ({ content, parameters, body }) => {
    if (text(body["text"]).length > 32_768)
      return invalid("Please enter a non-empty value of at most 32768 characters", 400);
    const added = addComment(content, Number(parameters[0]), text(body["text"]));
    return added ? Response.json(serverComment(added), { status: 201 }) : notFound();
  }),
  route("GET", "/api/1.0/projects/{repository}/pull-requests/(\\d+)/comments/(\\d+)", ({ content, parameters }) => {
    const found = commentsOf(content, Number(parameters[0])).find(({ id }) => id === Number(parameters[1]));
    return found ? Response.json(serverComment(found)) : notFound();
  }),
  route("PUT", "/api/1.0/projects/{repository}/pull-requests/(\\d+)/comments/(\\d+)", (call) => {
    const { content, parameters, body } = call;
    const found = commentsOf(content, Number(parameters[0])).find(({ id }) => id === Number(parameters[1]));
    if (!found) return notFound();
    if (found.version !== body["version"]) return invalid("The comment was changed", 409);
    return replaceComment(content, {
      id: String(found.id),
      body: text(body["text"]),
      show: serverComment,
      refusal: 401,
    });
  }),
];
