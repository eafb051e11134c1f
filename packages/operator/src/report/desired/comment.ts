/**
 * The comment on a pull request: what the preview would change, replacements and deletions first, violated policies and outputs. It
 * names changed properties, but shows no values, which a record may contain: a pull request may be public.
 */
import type { Update } from "@pko/api";
import { maxCommentLength } from "@pko/forge";
import { urnName, urnType, type ResourceEvent, type RunEvent } from "@pko/records";

import { changeSummary, riskOrder } from "../../shared/changes.ts";
import { isConditionTrue } from "../../shared/objects/conditions.ts";
import { truncate } from "../../shared/truncate.ts";
import * as messages from "../messages.ts";
import type { Details, Output, Subject } from "../view.ts";
import { linkOf } from "./commit-status.ts";
import { code, codeBlock, link } from "./markdown.ts";

interface CommentInputs {
  readonly update: Update;
  readonly subject: Subject;
  readonly details: Details;
}

interface Section {
  readonly title: string;
  readonly lines: readonly string[];
}

const maxError = 4096;
const maxValue = 512;
const maxName = 256;
const maxProperties = 8;

export function commentBody(inputs: CommentInputs): string {
  const { update, subject } = inputs;
  const heading = headingLines(inputs);
  const room = maxCommentLength[subject.target.type] - heading.length;
  return `${heading}${boundedSections(sectionsOf(update, inputs.details), room)}`;
}

function headingLines({ update, subject, details }: CommentInputs): string {
  const { status, spec } = update;
  const url = linkOf(update, subject);
  const isFailed = isConditionTrue(update, "Failed");
  const summary = changeSummary(status?.changes ?? {}, { isPreview: true, order: riskOrder });
  const result = isFailed ? messages.failed("preview", status?.errorClass) : summary;
  const facts = [
    `**${result}**`,
    `commit ${code(subject.commit.slice(0, 10))}`,
    ...(url === undefined ? [] : [link("details", url)]),
  ];
  const gaps = details.record?.omitted.events ?? 0;
  return [
    `### Pulumi preview of ${code(truncate(spec?.stackName ?? "", maxName))}`,
    facts.join(" · "),
    ...(isFailed && status?.message
      ? [`**${messages.errorOutput}**`, codeBlock(truncate(status.message, maxError))]
      : []),
    ...(details.record ? [] : [messages.noDetails]),
    ...(gaps > 0 ? [messages.incompleteRecord(gaps)] : []),
  ]
    .map((paragraph) => `${paragraph}\n`)
    .join("\n");
}

function sectionsOf(update: Update, { record, outputs }: Details): Section[] {
  const events = record?.events.map(({ event }) => event) ?? [];
  const changed = [...changedResources(events).values()];
  const isDestructive = ({ op }: ResourceEvent): boolean => op === "replace" || op === "delete";
  const sections = [
    { title: messages.destructiveChanges, lines: inOrder(changed.filter(isDestructive)).map(changeLine) },
    { title: messages.policyViolations, lines: events.flatMap(policyLine) },
    { title: messages.otherChanges, lines: inOrder(changed.filter((each) => !isDestructive(each))).map(changeLine) },
    { title: messages.outputs, lines: isConditionTrue(update, "Failed") ? [] : outputs.map(outputLine) },
  ];
  return sections.filter(({ lines }) => lines.length > 0);
}

const shownOps: readonly string[] = ["replace", "delete", "create", "update", "import"];

/** Each resource once: the engine reports the parts of a replacement, and the beginning and the end of a step. */
function changedResources(events: readonly RunEvent[]): Map<string, ResourceEvent> {
  const found = new Map<string, ResourceEvent>();
  for (const event of events) {
    if (event.kind !== "resource" || !shownOps.includes(event.op)) continue;
    if (event.resourceType === "pulumi:pulumi:Stack" || event.resourceType.startsWith("pulumi:providers:")) continue;
    const known = found.get(event.urn);
    // The end of a step has no properties if its beginning had them.
    if (!known || shownOps.indexOf(event.op) < shownOps.indexOf(known.op) || (!known.changes && event.changes)) {
      found.set(event.urn, known && known.op === "replace" ? { ...event, op: "replace" } : event);
    }
  }
  return found;
}

function inOrder(events: readonly ResourceEvent[]): ResourceEvent[] {
  const rank = ({ op }: ResourceEvent): number => shownOps.indexOf(op);
  return events.toSorted((a, b) => rank(a) - rank(b) || (a.urn < b.urn ? -1 : 1));
}

function changeLine({ op, urn, changes = [], replaceKeys = [], omittedChanges = 0 }: ResourceEvent): string {
  const named = replaceKeys.length > 0 ? replaceKeys : changes.map(({ path }) => path);
  const paths = [...new Set(named)];
  const shown = op === "create" || op === "delete" ? [] : paths.slice(0, maxProperties);
  const rest = shown.length === 0 ? 0 : paths.length - shown.length + omittedChanges;
  const properties = [
    ...shown.map((path) => code(truncate(path, maxName))),
    ...(rest > 0 ? [messages.omitted(rest)] : []),
  ];
  const resource = `${code(truncate(urnType(urn), maxName))} ${code(truncate(urnName(urn), maxName))}`;
  return `- ${op} ${resource}${properties.length > 0 ? `: ${properties.join(", ")}` : ""}`;
}

function policyLine(event: RunEvent): string[] {
  if (event.kind !== "policy") return [];
  const { level, policy, message, urn } = event;
  const place = urn === undefined ? "" : ` for ${code(truncate(urnName(urn), maxName))}`;
  return [`- ${code(level)} ${code(policy)}${place}: ${code(truncate(message, maxValue))}`];
}

function outputLine({ name, json }: Output): string {
  const value = json === undefined ? messages.secretOutput : code(truncate(json, maxValue));
  return `- ${code(truncate(name, maxName))}: ${value}`;
}

/** As many lines as fit, the first sections first, and for each section the number of those that do not. */
function boundedSections(sections: readonly Section[], room: number): string {
  let spare = room - sections.reduce((length, section) => length + cutSection(section, 0).length, 0);
  const texts = sections.map((section) => {
    const least = cutSection(section, 0).length;
    const text = boundedSection(section, least + spare);
    spare -= text.length - least;
    return text;
  });
  return texts.join("");
}

function boundedSection(section: Section, room: number): string {
  const { lines } = section;
  const whole = cutSection(section, lines.length);
  if (whole.length <= room) return whole;
  let shown = 0;
  let { length } = cutSection(section, 0);
  for (const line of lines) {
    length += line.length + 1;
    if (length > room) break;
    shown += 1;
  }
  return cutSection(section, shown);
}

/** The first lines, and the number of the others. */
function cutSection({ title, lines }: Section, shown: number): string {
  const rest = lines.length - shown;
  const shownLines = [...lines.slice(0, shown), ...(rest > 0 ? [`- ${messages.omitted(rest)}`] : [])];
  return `\n**${title}**\n\n${shownLines.map((line) => `${line}\n`).join("")}`;
}
