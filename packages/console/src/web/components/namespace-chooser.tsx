/** For users who may not list a kind in all namespaces. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { fieldText, kubernetes } from "../data/api.ts";

/** With spaces around it, which are removed. */
const namePattern = "\\s*[a-z0-9]([\\-a-z0-9]*[a-z0-9])?\\s*";

/** Undefined if the user may not list namespaces either. */
const names = signal<readonly string[] | undefined>(undefined);

async function loadNames(): Promise<void> {
  try {
    const { items } = await kubernetes<{ items: { metadata: { name: string } }[] }>("/api/v1/namespaces");
    names.value = items.map(({ metadata }) => metadata.name);
  } catch {
    names.value = undefined;
  }
}

export function NamespaceChooser({ onChoose }: { readonly onChoose: (namespace: string) => void }) {
  useEffect(() => void loadNames(), []);
  return (
    <form
      class="chooser"
      onSubmit={(event) => {
        event.preventDefault();
        const namespace = fieldText(event.currentTarget, "namespace");
        if (namespace !== "") onChoose(namespace);
      }}
    >
      <label>
        <span>Namespace</span>
        <input
          name="namespace"
          list="namespaces"
          required
          autocomplete="off"
          pattern={namePattern}
          title="A namespace has lower-case letters, digits and hyphens."
        />
      </label>
      <datalist id="namespaces">
        {(names.value ?? []).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <button type="submit" class="primary">
        Show its Stacks
      </button>
    </form>
  );
}
