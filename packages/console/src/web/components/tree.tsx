/** A tree of nested lists: the browser's own disclosure elements, so that keys and screen readers work. */
import type { ComponentChildren } from "preact";

export interface TreeItem {
  readonly id: string;
  readonly label: ComponentChildren;
  readonly children: readonly TreeItem[];
}

export function Tree({ label, items }: { readonly label: string; readonly items: readonly TreeItem[] }) {
  return (
    <ul class="tree" aria-label={label}>
      {items.map((item) => (
        <Item key={item.id} item={item} />
      ))}
    </ul>
  );
}

function Item({ item }: { readonly item: TreeItem }) {
  if (item.children.length === 0) return <li class="tree-leaf">{item.label}</li>;
  return (
    <li>
      <details open>
        <summary>{item.label}</summary>
        <ul>
          {item.children.map((child) => (
            <Item key={child.id} item={child} />
          ))}
        </ul>
      </details>
    </li>
  );
}
