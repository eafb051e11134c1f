/**
 * A message for workflows of Microsoft Teams that post to a channel: an Adaptive Card. Pure.
 *
 * The runs of a RichTextBlock are not Markdown, unlike those of a TextBlock: what programs have written is shown as it is.
 */
import type { Severity } from "@pko/api";

import type { Digest, Line } from "./text.ts";

const colors: Readonly<Record<Severity, string>> = { Error: "Attention", Warning: "Warning", Info: "Good" };

export function teamsMessage({ title, lines, omitted, severity }: Digest): object {
  const body = [
    paragraph({ text: title, weight: "Bolder", color: colors[severity] }),
    ...lines.flatMap((line) => (lines.length === 1 ? details(line) : [heading(line), ...details(line)])),
    ...(omitted === undefined ? [] : [paragraph({ text: omitted })]),
  ];
  const [only] = lines;
  const permalink = lines.length === 1 ? only?.permalink : undefined;
  return {
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        content: {
          $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
          type: "AdaptiveCard",
          version: "1.4",
          body,
          ...(permalink !== undefined && {
            actions: [{ type: "Action.OpenUrl", title: "Open in Pulumi Cloud", url: permalink }],
          }),
        },
      },
    ],
  };
}

interface Run {
  readonly text: string;
  readonly weight?: "Bolder";
  readonly color?: string;
  readonly fontType?: "Monospace";
  readonly isSubtle?: true;
}

const paragraph = (run: Run): object => ({ type: "RichTextBlock", inlines: [{ type: "TextRun", ...run }] });

const heading = ({ severity, title }: Line): object => paragraph({ text: title, color: colors[severity] });

function details({ why, action }: Line): object[] {
  return [
    ...(why === "" ? [] : [paragraph({ text: why, isSubtle: true })]),
    ...(action === undefined ? [] : [paragraph({ text: action, fontType: "Monospace" })]),
  ];
}
