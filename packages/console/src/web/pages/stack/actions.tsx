/** The buttons of a Stack. Those that the user may not use are shown with the missing permission, and do nothing. */
import type { Stack } from "@pko/api/browser";
import { useSignal } from "@preact/signals";

import { Dialog, perform } from "../../components/dialog.tsx";
import { cancel, checkDrift, reconcile, suspend } from "../../data/actions.ts";
import { mayI, permissionText, stackPatch } from "../../data/permissions.ts";

interface Action {
  /** The button keeps the focus while its text changes. */
  readonly key: string;
  readonly text: string;
  readonly question: string;
  readonly details: string;
  readonly done: string;
  readonly isDangerous?: boolean;
  readonly run: () => Promise<void>;
}

const gitOpsHint =
  "If a GitOps tool manages the Stack, it may revert this: change spec.suspend in the repository as well.";

function actionsOf({ metadata, spec, status }: Stack): Action[] {
  const { namespace = "", name = "" } = metadata;
  const stack = { namespace, name };
  const running = status?.currentUpdate?.name;
  return [
    {
      key: "reconcile",
      text: "Reconcile",
      question: `Request an update of ${name} now?`,
      details: "The operator runs an update even if nothing has changed.",
      done: `Requested an update of Stack ${name}.`,
      run: async () => await reconcile(stack),
    },
    {
      key: "drift",
      text: "Check drift",
      question: `Check ${name} for drift now?`,
      details: "The check compares resources with the state, and changes nothing.",
      done: `Requested a check of Stack ${name} for drift.`,
      run: async () => await checkDrift(stack),
    },
    spec.suspend
      ? {
          key: "suspend",
          text: "Resume",
          question: `Resume ${name}?`,
          details: gitOpsHint,
          done: `Stack ${name} is resumed.`,
          run: async () => await suspend(stack, false),
        }
      : {
          key: "suspend",
          text: "Suspend",
          question: `Suspend ${name}?`,
          details: `Nothing new starts; a running update finishes. ${gitOpsHint}`,
          done: `Stack ${name} is suspended.`,
          run: async () => await suspend(stack, true),
        },
    ...(running === undefined
      ? []
      : [
          {
            key: "cancel",
            text: "Cancel update",
            question: `Cancel Update ${running}?`,
            details: "Pulumi stops as with Ctrl-C. The update is not retried until something changes.",
            done: `Requested the cancellation of Update ${running}.`,
            isDangerous: true,
            run: async () => await cancel(stack, running),
          },
        ]),
  ];
}

export function StackActions({ stack }: { readonly stack: Stack }) {
  const asked = useSignal<Action | undefined>(undefined);
  const permission = stackPatch(stack.metadata.namespace ?? "", stack.metadata.name ?? "");
  const answer = mayI(permission).value;
  if (answer === "unknown") return null;
  if (answer === "denied") {
    return (
      <p class="read-only muted">
        Read-only: you lack the permission <code>{permissionText(permission)}</code>.
      </p>
    );
  }
  const close = (): void => {
    asked.value = undefined;
  };
  return (
    <div class="actions">
      {actionsOf(stack).map((action) => (
        <button
          key={action.key}
          type="button"
          class={action.isDangerous ? "danger" : ""}
          onClick={() => (asked.value = action)}
        >
          {action.text}
        </button>
      ))}
      {asked.value ? <Confirm action={asked.value} onClose={close} /> : null}
    </div>
  );
}

const Confirm = ({ action, onClose }: { readonly action: Action; readonly onClose: () => void }) => (
  <Dialog
    title={action.question}
    confirmText={action.text}
    isDangerous={action.isDangerous ?? false}
    onCancel={onClose}
    onConfirm={() => {
      onClose();
      void perform(action.run, action.done);
    }}
  >
    <p>{action.details}</p>
  </Dialog>
);
