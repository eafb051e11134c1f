/** Asks for a token. Nothing else is shown, and the token is never stored in the browser. */
import { useSignal } from "@preact/signals";

import { Notice, PageTitle } from "../components/common.tsx";
import { errorText, fieldText, session, sessionProblem, signIn } from "../data/api.ts";
import { navigate } from "../data/location.ts";
import { forgetWatches } from "../data/watches.ts";

export function SignInPage() {
  const problem = useSignal("");
  const mode = session.value?.mode ?? "token";
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const token = fieldText(form, "token");
    try {
      // Before the pages of the new user watch anything.
      forgetWatches();
      await signIn(token);
      form.reset();
      if (location.pathname === "/sign-in") navigate("/");
    } catch (error) {
      problem.value = errorText(error);
    }
  };
  return (
    <div class="sign-in">
      <PageTitle title="Sign in" />
      {sessionProblem.value === "" ? null : <Notice tone="bad" title={sessionProblem.value} />}
      {mode === "kubeconfig" ? <OpenFromTerminal /> : null}
      {mode === "proxy" ? <SignInAtProxy /> : null}
      {mode === "token" ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void submit(event.currentTarget);
          }}
        >
          <p>The console has no permissions of its own: it uses yours. Enter a token of the Kubernetes API.</p>
          <label>
            <span>Token</span>
            <input name="token" type="password" required autocomplete="off" spellcheck={false} />
          </label>
          <p class="muted">
            To create one for a service account: <code>kubectl create token NAME</code>
          </p>
          {problem.value === "" ? null : <Notice tone="bad" title={problem.value} />}
          <button type="submit" class="primary">
            Sign in
          </button>
        </form>
      ) : null}
    </div>
  );
}

const OpenFromTerminal = () => (
  <p>
    This address needs the token that <code>kubectl pulumi ui</code> has printed. Open the address from your terminal.
  </p>
);

/** The proxy shows its own page when this one is loaded again. */
const SignInAtProxy = () => (
  <>
    <p>Your session at the proxy in front of this console has ended.</p>
    <button type="button" class="primary" onClick={() => location.reload()}>
      Sign in again
    </button>
    <p class="muted">If this page returns, the API server does not accept the token that the proxy sends.</p>
  </>
);
