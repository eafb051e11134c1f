/**
 * A message for incoming webhooks of Slack, and of services that understand its text, such as Mattermost. Pure.
 *
 * What programs have written is in code blocks, in which Slack interprets nothing but the three characters that must always
 * be escaped: so it can neither mention anyone nor show a link under another name.
 */
import type { Severity } from "@pko/api";

import type { Digest, Line } from "./text.ts";

const icons: Readonly<Record<Severity, string>> = {
  Error: ":red_circle:",
  Warning: ":large_yellow_circle:",
  Info: ":large_green_circle:",
};

export function slackMessage({ title, lines, omitted, severity }: Digest): { readonly text: string } {
  const isSingle = lines.length === 1;
  const body = lines.flatMap((line) => [
    ...(isSingle ? [] : [`${icons[line.severity]} ${escape(line.title)}`]),
    ...details(line),
  ]);
  const rest = omitted === undefined ? [] : [escape(omitted)];
  return { text: [`${icons[severity]} *${escape(title)}*`, ...body, ...rest].join("\n") };
}

function details({ why, action, permalink }: Line): string[] {
  return [
    ...(why === "" ? [] : ["```", escape(why).replaceAll("`", "'"), "```"]),
    ...(action === undefined ? [] : [`\`${escape(action)}\``]),
    ...(permalink === undefined ? [] : [`<${escape(permalink).replaceAll("|", "%7C")}|Open in Pulumi Cloud>`]),
  ];
}

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
