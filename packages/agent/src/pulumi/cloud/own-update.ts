/**
 * An update that a dead run of this workspace left behind locks its stack until its lease expires minutes later. Each run
 * marks its update, so that only this workspace's own update is cancelled, never another one.
 */
import type { Environment } from "@pko/git";
import { parseJson } from "@pko/rpc";
import { Type, type Static, type TSchema } from "typebox";
import { callApi } from "./api.ts";
import { cloudUrl } from "./backend.ts";

/** Variables that the CLI records with an update: here, the Workspace and the run. */
export function updateMark(workspaceUid: string, runId: string): Record<string, string> {
  return { PULUMI_CI_SYSTEM: "Pulumi Kubernetes Operator", PULUMI_CI_BUILD_ID: `${workspaceUid}/${runId}` };
}

const markName = "ci.build.id";

interface OwnUpdateQuery {
  readonly env: Environment;
  /** The backend in the project file. */
  readonly backend: string | undefined;
  readonly workspaceUid: string;
  /** The name as selected, with or without organization and project. */
  readonly stack: string;
  readonly project: string;
}

const Stack = Type.Object({ activeUpdate: Type.Optional(Type.String()) });
const Updates = Type.Object({
  updates: Type.Array(
    Type.Object({
      updateID: Type.String(),
      info: Type.Object({ result: Type.String(), environment: Type.Optional(Type.Unknown()) }),
    }),
  ),
});
const DefaultOrganization = Type.Object({ GitHubLogin: Type.String() });
const User = Type.Object({ githubLogin: Type.String() });

/** Cancels the active update if this workspace left it behind, and returns its ID. */
export async function cancelOwnUpdate(query: OwnUpdateQuery): Promise<string | undefined> {
  const url = cloudUrl(query.env, query.backend);
  const token = query.env["PULUMI_ACCESS_TOKEN"];
  if (url === undefined || !token) return undefined;
  const api = new Api(url, token, query.env);
  const path = await stackPath(api, query);
  if (path === undefined) return undefined;
  const active = (await api.get(Stack, path))?.activeUpdate;
  const recent = await api.get(Updates, `${path}/updates?output-type=service&page=1&pageSize=10`);
  const update = recent?.updates.find(({ updateID }) => updateID === active);
  if (!update || update.info.result !== "in-progress" || !isOwn(update.info.environment, query)) return undefined;
  return (await api.post(`${path}/update/${update.updateID}/cancel`)) ? update.updateID : undefined;
}

function isOwn(environment: unknown, { workspaceUid }: OwnUpdateQuery): boolean {
  if (typeof environment !== "object" || environment === null) return false;
  const mark: unknown = Reflect.get(environment, markName);
  return typeof mark === "string" && mark.startsWith(`${workspaceUid}/`);
}

async function stackPath(api: Api, { stack, project }: OwnUpdateQuery): Promise<string | undefined> {
  const parts = stack.split("/");
  const name = parts.at(-1) ?? "";
  const organization = parts.length > 1 ? parts[0] : await defaultOrganization(api);
  if (!organization) return undefined;
  // The CLI does the same.
  const cleaned = project.replaceAll(/[^a-zA-Z0-9-_.]/g, "-");
  const segments = [organization, parts.length === 3 ? (parts[1] ?? "") : cleaned, name];
  return `/api/stacks/${segments.map(encodeURIComponent).join("/")}`;
}

async function defaultOrganization(api: Api): Promise<string | undefined> {
  const configured = await api.get(DefaultOrganization, "/api/user/organizations/default");
  return configured?.GitHubLogin || (await api.get(User, "/api/user"))?.githubLogin;
}

class Api {
  readonly #url: string;
  readonly #env: Environment;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, token: string, env: Environment) {
    this.#url = url;
    this.#env = env;
    this.#headers = { authorization: `token ${token}` };
  }

  async get<S extends TSchema>(schema: S, path: string): Promise<Static<S> | undefined> {
    const response = await callApi({ method: "GET", url: this.#url + path, headers: this.#headers, env: this.#env });
    const parsed =
      response.kind === "answered" && response.status === 200 ? parseJson(schema, response.text) : undefined;
    return parsed?.ok ? parsed.value : undefined;
  }

  async post(path: string): Promise<boolean> {
    const response = await callApi({ method: "POST", url: this.#url + path, headers: this.#headers, env: this.#env });
    return response.kind === "answered" && response.status < 300;
  }
}
