/** Requests to the console's server, which passes them on with the user's own permissions. */
import { signal } from "@preact/signals";

import {
  apiPrefix,
  consoleHeader,
  consoleHeaderValue,
  urlTokenParameter,
  type Session,
} from "../../shared/contract.ts";
import { missingPermission } from "../lib/permission.ts";
import { isProxySignIn } from "../lib/proxy-answer.ts";

export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }

  get permission(): string | undefined {
    return this.status === 403 ? missingPermission(this.message) : undefined;
  }
}

/** Undefined until the server has answered. */
export const session = signal<Session | undefined>(undefined);
export const sessionProblem = signal("");

export async function loadSession(): Promise<void> {
  const token = takeUrlToken();
  try {
    session.value = token === undefined ? await request<Session>("/session") : await postToken(token);
    sessionProblem.value = "";
  } catch (error) {
    const isRefused = error instanceof ApiError && error.status === 401;
    if (isRefused && token === undefined) return showProxySignIn();
    sessionProblem.value = errorText(error);
    if (isRefused) await showRefusal();
  }
}

/** The console itself describes the session of everyone: a proxy in front of it has refused the request. */
function showProxySignIn(): void {
  session.value = { signedIn: false, mode: "proxy" };
  sessionProblem.value = "";
}

/** Whether the session at a proxy has ended; then the sign-in page says so. */
export function isSignedOutByProxy(response: Response): boolean {
  if (!isProxySignIn(response)) return false;
  showProxySignIn();
  return true;
}

/** The address was used before. In the browser that used it, the session continues. */
async function showRefusal(): Promise<void> {
  const current = await request<Session>("/session").catch((): Session => ({ signedIn: false, mode: "token" }));
  if (current.signedIn) sessionProblem.value = "";
  session.value = current;
}

const urlToken = (): string | null => new URLSearchParams(location.hash.slice(1)).get(urlTokenParameter);

/** The address can start a new session. */
export const hasUrlToken = (): boolean => urlToken() !== null;

/** The token must not stay in the address, where it could be copied. */
function takeUrlToken(): string | undefined {
  const token = urlToken();
  if (token === null) return undefined;
  history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}

const postToken = async (token: string): Promise<Session> =>
  await request<Session>("/session", { method: "POST", body: { token } });

export async function signIn(token: string): Promise<void> {
  session.value = await postToken(token);
}

export async function signOut(): Promise<void> {
  await request("/session", { method: "DELETE" });
  await loadSession();
}

interface RequestOptions {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  readonly body?: unknown;
  readonly contentType?: string;
}

export const kubernetes = async <T>(path: string, options: RequestOptions = {}): Promise<T> =>
  await request<T>(`${apiPrefix}${path}`, options);

async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const { method = "GET", body, contentType = "application/json" } = options;
  const response = await fetch(path, {
    method,
    redirect: "manual",
    headers: {
      accept: "application/json",
      ...(method !== "GET" && { [consoleHeader]: consoleHeaderValue }),
      ...(body !== undefined && { "content-type": contentType }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (isSignedOutByProxy(response)) throw new ApiError(401, "The session at the proxy has ended. Sign in again.");
  const text = await response.text();
  if (!response.ok) throw failure(response, text, path);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

function failure(response: Response, text: string, path: string): ApiError {
  const message = messageIn(text) ?? `The server answered ${response.status} ${response.statusText}.`;
  if (response.status === 401 && path !== "/session") {
    session.value = { signedIn: false, mode: session.peek()?.mode ?? "token" };
  }
  return new ApiError(response.status, message);
}

/** Of a Problem or a Status. */
export function messageIn(text: string): string | undefined {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}

/** The text of a field of a form. */
export function fieldText(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name);
  return typeof value === "string" ? value.trim() : "";
}

export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));
