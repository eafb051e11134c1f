/** What all pages use: sections, facts, tabs, times and notices. */
import { relative } from "@pko/api/browser";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { now } from "../data/clock.ts";
import type { Watched } from "../data/watches.ts";
import { Icon, type Tone } from "./icon.tsx";

type Children = { readonly children?: ComponentChildren };

/** The heading of the page, which is also the title of the tab. */
export function PageTitle({ title, children }: { readonly title: string } & Children) {
  useEffect(() => {
    document.title = `${title} · Pulumi`;
  }, [title]);
  return (
    <div class="page-title">
      <h1>{title}</h1>
      {children}
    </div>
  );
}

export function Section({ title, children, id }: { readonly title: string; readonly id?: string } & Children) {
  return (
    <section class="section" id={id}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

export type Fact = readonly [label: string, value: ComponentChildren];

/** Facts without a value are left out. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  const shown = facts.filter(([, value]) => value !== undefined && value !== "" && value !== null);
  return (
    <dl class="facts">
      {shown.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export interface Tab {
  readonly name: string;
  readonly href: string;
  readonly isCurrent: boolean;
  /** Not shown if there is nothing. */
  readonly count?: number | undefined;
}

export function Tabs({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }) {
  const row = useRef<HTMLElement>(null);
  const current = tabs.find(({ isCurrent }) => isCurrent)?.name;
  useEffect(() => {
    // On a narrow screen the row scrolls.
    row.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current]);
  return (
    <nav ref={row} class="tabs" aria-label={label}>
      {tabs.map(({ name, href, isCurrent, count }) => (
        <a key={name} href={href} aria-current={isCurrent ? "page" : undefined}>
          {name}
          {count ? <span class="count">{count}</span> : null}
        </a>
      ))}
    </nav>
  );
}

/** `12m ago`, with the exact time for those who need it. */
export function Time({ time }: { readonly time: string | undefined }) {
  if (time === undefined) return null;
  const text = relative(time, now.value);
  return text === "" ? null : (
    <time dateTime={time} title={time}>
      {text}
    </time>
  );
}

export function Notice({ tone, title, children }: { readonly tone: Tone; readonly title: string } & Children) {
  return (
    <div class={`notice tone-${tone}`} role={tone === "bad" ? "alert" : "status"}>
      <strong>
        <Icon name={tone === "bad" ? "cross" : tone === "warning" ? "triangle" : "question"} />
        {title}
      </strong>
      {children}
    </div>
  );
}

export const Empty = ({ title, children }: { readonly title: string } & Children) => (
  <div class="empty">
    <p class="empty-title">{title}</p>
    {children}
  </div>
);

/** What is missing, and which permission would show it. */
export const Denied = ({ what, permission }: { readonly what: string; readonly permission: string }) => (
  <MissingPermission title={`You do not have permission to view ${what}.`} permission={permission} />
);

export const MissingPermission = ({ title, permission }: { readonly title: string; readonly permission: string }) => (
  <Notice tone="warning" title={title}>
    <p>
      The missing permission is <code>{permission}</code>. An administrator of the cluster can grant it.
    </p>
  </Notice>
);

/** Loading, denied, or the retried problem of a watch; nothing if all is well. */
export function WatchNotice({ watched, what }: { readonly watched: Watched<unknown>; readonly what: string }) {
  const { state, problem } = watched;
  if (state.kind === "denied") return <Denied what={what} permission={state.permission} />;
  if (problem !== "") {
    return (
      <Notice tone="warning" title={`The connection for ${what} has a problem, and is retried.`}>
        <p>{problem}</p>
      </Notice>
    );
  }
  return state.kind === "loading" && watched.items.length === 0 ? <Loading what={what} /> : null;
}

export const Loading = ({ what }: { readonly what: string }) => (
  <p class="loading" role="status">
    Loading {what}…
  </p>
);

/** For tables that are wider than the screen. */
export const TableFrame = ({ label, children }: { readonly label: string } & Children) => (
  <div class="table-frame" role="region" aria-label={label} tabIndex={0}>
    {children}
  </div>
);

/** Only http and https: an address in a status is data of others. */
export function ExternalLink({ href, children }: { readonly href: string } & Children) {
  if (!/^https?:\/\//i.test(href)) return <span>{children ?? href}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children ?? href.replace(/^https?:\/\//i, "")}
      <Icon name="external" />
      <span class="visually-hidden"> (opens in a new tab)</span>
    </a>
  );
}
