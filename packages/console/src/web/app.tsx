/** The frame of all pages, and which page is shown. */
import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { Empty, Loading, Notice, PageTitle } from "./components/common.tsx";
import { Messages } from "./components/dialog.tsx";
import { errorText, loadSession, session, sessionProblem, signOut } from "./data/api.ts";
import { query, route } from "./data/location.ts";
import { withNamespace } from "./data/fleet.ts";
import { connection, connectionProblem } from "./data/stream.ts";
import { chooseTheme, theme, themes, type Theme } from "./data/theme.ts";
import { forgetWatches } from "./data/watches.ts";
import { paths, type Route } from "./lib/routes.ts";
import { ApprovalPage, ApprovalsPage } from "./pages/approvals.tsx";
import { ComparePage } from "./pages/compare.tsx";
import { DependenciesPage } from "./pages/dependencies.tsx";
import { FleetPage } from "./pages/fleet.tsx";
import { OperatorPage } from "./pages/operator.tsx";
import { RunPage } from "./pages/run/index.tsx";
import { SignInPage } from "./pages/sign-in.tsx";
import { StackPage } from "./pages/stack/index.tsx";

export function App() {
  const main = useRef<HTMLElement>(null);
  useFocusOnNavigation(main);
  const current = session.value;
  return (
    <>
      <a class="skip-link" href="#main" onClick={(event) => focusMain(event, main.current)}>
        Skip to the content
      </a>
      <Header />
      <main id="main" ref={main} tabIndex={-1} data-page={route.value.page}>
        <ConnectionProblem />
        {current === undefined ? <Starting /> : current.signedIn ? <Page route={route.value} /> : <SignInPage />}
      </main>
      <Messages />
    </>
  );
}

function focusMain(event: Event, main: HTMLElement | null): void {
  event.preventDefault();
  main?.focus();
}

/** As after loading a page: the next Tab starts in the content. Signing in and out replaces the page, too. */
function useFocusOnNavigation(main: { readonly current: HTMLElement | null }): void {
  useEffect(() => {
    let last: string | undefined;
    return effect(() => {
      const shown = route.value;
      const { signedIn } = session.value ?? {};
      if (signedIn === undefined) return;
      const object = "namespace" in shown ? `${shown.namespace}/${shown.name}` : "";
      const key = [signedIn, shown.page, object].join(" ");
      if (last !== undefined && last !== key) main.current?.focus({ preventScroll: true });
      last = key;
    });
  }, [main]);
}

function Starting() {
  if (sessionProblem.value === "") return <Loading what="the console" />;
  return (
    <Notice tone="bad" title="The console's server does not answer.">
      <p>{sessionProblem.value}</p>
      <button type="button" onClick={() => void loadSession()}>
        Try again
      </button>
    </Notice>
  );
}

function Page({ route: shown }: { readonly route: Route }): JSX.Element {
  switch (shown.page) {
    case "fleet":
      return <FleetPage />;
    case "stack":
      return <StackPage key={`${shown.namespace}/${shown.name}`} {...shown} />;
    case "run":
      return <RunPage key={`${shown.namespace}/${shown.name}`} {...shown} />;
    case "compare":
      return <ComparePage {...shown} />;
    case "approvals":
      return <ApprovalsPage />;
    case "approval":
      return <ApprovalPage key={`${shown.namespace}/${shown.name}`} {...shown} />;
    case "dependencies":
      return <DependenciesPage />;
    case "operator":
      return <OperatorPage />;
    case "signIn":
      return <SignedIn />;
    case "missing":
      return <Missing path={shown.path} />;
  }
}

const SignedIn = () => (
  <>
    <PageTitle title="Signed in" />
    <p>
      You are signed in as {session.value?.user ?? "a user"}. <a href={paths.fleet}>Show the Stacks</a>
    </p>
  </>
);

const Missing = ({ path }: { readonly path: string }) => (
  <>
    <PageTitle title="Not found" />
    <Empty title={`There is no page ${path}.`}>
      <a href={paths.fleet}>Show all Stacks</a>
    </Empty>
  </>
);

const links = [
  { text: "Stacks", path: paths.fleet, pages: ["fleet", "stack", "run", "compare"] },
  { text: "Approvals", path: paths.approvals, pages: ["approvals", "approval"] },
  { text: "Dependencies", path: paths.dependencies, pages: ["dependencies"] },
  { text: "Operator", path: paths.operator, pages: ["operator"] },
] as const satisfies readonly { text: string; path: string; pages: readonly Route["page"][] }[];

function Header() {
  const { page } = route.value;
  const namespace = query.value.get("namespace") ?? "";
  const isSignedIn = session.value?.signedIn === true;
  return (
    <header class="header">
      <a class="brand" href={paths.fleet}>
        Pulumi
      </a>
      {isSignedIn ? (
        <nav class="main-nav" aria-label="Main">
          {links.map(({ text, path, pages }) => (
            <a
              key={path}
              href={withNamespace(path, namespace)}
              aria-current={pages.some((each) => each === page) ? "page" : undefined}
            >
              {text}
            </a>
          ))}
        </nav>
      ) : null}
      <div class="header-end">
        <ConnectionState />
        <ThemeChoice />
        {isSignedIn ? <User /> : null}
      </div>
    </header>
  );
}

function ConnectionState() {
  const state = connection.value;
  return (
    <span class="connection" role="status">
      {state === "lost" ? <span class="badge tone-warning">Reconnecting…</span> : null}
    </span>
  );
}

const themeNames: Readonly<Record<Theme, string>> = { system: "Auto", light: "Light", dark: "Dark" };

const ThemeChoice = () => (
  <label class="theme">
    <span class="visually-hidden">Theme</span>
    <select value={theme.value} onChange={({ currentTarget }) => chooseTheme(currentTarget.value)}>
      {themes.map((each) => (
        <option key={each} value={each}>
          {themeNames[each]}
        </option>
      ))}
    </select>
  </label>
);

function ConnectionProblem() {
  if (connection.value !== "lost" || connectionProblem.value === "") return null;
  return (
    <Notice tone="warning" title="This page is not up to date: its connection was refused, and is retried.">
      <p>{connectionProblem.value}</p>
    </Notice>
  );
}

function User() {
  const { user, mode, context } = session.value ?? {};
  const leave = async (): Promise<void> => {
    try {
      await signOut();
      forgetWatches();
    } catch (error) {
      sessionProblem.value = errorText(error);
    }
  };
  return (
    <>
      <span class="user" title={user}>
        {user}
        {context === undefined ? null : <span class="muted"> {context}</span>}
      </span>
      {mode === "token" ? (
        <button type="button" class="quiet" onClick={() => void leave()}>
          Sign out
        </button>
      ) : null}
    </>
  );
}
