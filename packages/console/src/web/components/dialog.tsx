/** Questions before an action, and messages about its result. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { ApiError, errorText } from "../data/api.ts";
import { focusAgain, mainElement, useFocusAfterRemoval } from "../data/focus.ts";

interface Message {
  readonly text: string;
  readonly isError: boolean;
}

const message = signal<Message | undefined>(undefined);

/** Runs an action and shows how it ended. */
export async function perform(action: () => Promise<void>, done: string): Promise<boolean> {
  try {
    await action();
    message.value = { text: done, isError: false };
    return true;
  } catch (error) {
    const permission = error instanceof ApiError ? error.permission : undefined;
    const text =
      permission === undefined
        ? errorText(error)
        : `You do not have permission to do this. The missing permission is ${permission}.`;
    message.value = { text, isError: true };
    return false;
  }
}

export function Messages() {
  const shown = message.value;
  return (
    <div class="messages" role="status" aria-live="polite">
      {shown ? <MessageBox {...shown} /> : null}
    </div>
  );
}

function MessageBox({ text, isError }: Message) {
  useFocusAfterRemoval();
  return (
    <div class={`message ${isError ? "tone-bad" : "tone-good"}`}>
      <span>{text}</span>
      <button type="button" class="quiet" onClick={() => (message.value = undefined)}>
        Dismiss
      </button>
    </div>
  );
}

interface DialogProps {
  readonly title: string;
  readonly confirmText: string;
  readonly isDangerous?: boolean;
  readonly onConfirm: () => void;
  readonly onCancel: () => void;
  readonly children?: ComponentChildren;
}

/** The browser's own dialog: it keeps the focus inside and closes with Escape. Afterwards the focus is where it was. */
export function Dialog({ title, confirmText, isDangerous = false, onConfirm, onCancel, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    // Once the dialog is removed. The button may have been removed by the action.
    return () =>
      queueMicrotask(() => focusAgain(opener instanceof HTMLElement && opener.isConnected ? opener : mainElement()));
  }, []);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="dialog-title" onClose={onCancel}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm();
        }}
      >
        <h2 id="dialog-title">{title}</h2>
        {children}
        <div class="dialog-buttons">
          <button type="button" onClick={onCancel}>
            Back
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"}>
            {confirmText}
          </button>
        </div>
      </form>
    </dialog>
  );
}
