/** Durations in Go's format: `30m`, `1h30m`, `1.5h`. */
import { validationText, validatedBy, type ValidationMessage } from "../schema/cel.ts";
import { text, wholeInTemplates } from "../schema/field.ts";

export const durationMessage: ValidationMessage = {
  message: "is not a valid duration",
  remedy: "use numbers with units, such as 90s, 30m or 1h30m",
};

/** Has the same meaning in RE2, which CEL uses, and in JavaScript. */
export const durationPattern = "^[-+]?(0|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";

const maxLength = 128;

export const duration = (description: string) =>
  text(description, {
    maxLength,
    ...wholeInTemplates,
    ...validatedBy({ rule: `self.matches(r'${durationPattern}')`, message: validationText(durationMessage) }),
  });

const millisecondsIn: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

/** Milliseconds, or undefined if the string is not a duration. */
export function parseDuration(value: string): number | undefined {
  if (value.length > maxLength || !new RegExp(durationPattern, "u").test(value)) return undefined;
  const sign = value.startsWith("-") ? -1 : 1;
  const parts = value.matchAll(/([0-9.]+)([a-zµμ]+)/gu);
  let total = 0;
  for (const [, amount = "0", unit = "h"] of parts) total += Number(amount) * (millisecondsIn[unit] ?? 0);
  return total === 0 ? 0 : sign * total;
}
