/** A tree of nested lists: the browser's own disclosure elements, so that keys and screen readers work. */
import type { ComponentChildren } from "preact";

export interface TreeItem {
  readonly id: string;
  readonly label: ComponentChildren;
  readonly children: readonly TreeItem[];
}

interface Props {
  readonly label: string;
  readonly items: readonly TreeItem[];
  /** Whether branches can be closed. Labels with links cannot also be buttons. */
  readonly isCollapsible?: boolean;
}

export function Tree({ label, items, isCollapsible = true }: Props) {
  return (
    <ul class={isCollapsible ? "tree" : "tree tree-open"} aria-label={label}>
      {items.map((item) => (
        <Item key={item.id} item={item} isCollapsible={isCollapsible} />
      ))}
    </ul>
  );
}

interface ItemProps {
  readonly item: TreeItem;
  readonly isCollapsible: boolean;
}

function Item({ item: { label, children }, isCollapsible }: ItemProps) {
  if (children.length === 0) return <li class="tree-leaf">{label}</li>;
  const branch = (
    <ul>
      {children.map((child) => (
        <Item key={child.id} item={child} isCollapsible={isCollapsible} />
      ))}
    </ul>
  );
  if (!isCollapsible) {
    return (
      <li>
        <div class="tree-leaf">{label}</div>
        {branch}
      </li>
    );
  }
  return (
    <li>
      <details open>
        <summary>{label}</summary>
        {branch}
      </details>
    </li>
  );
}
