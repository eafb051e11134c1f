/**
 * What a secret can look like in an output: as it is, line by line, as JSON and URLs spell it, in base64; and the
 * secrets inside one that is a document, such as the private key in the JSON of a cloud's service account.
 */

/** Shorter ones are words of the language: masking them would make a log unreadable and hide nothing. */
const minLength = 6;
/** Parts of a document, and what is encoded, are masked only from here on: short ones are found where they are not. */
const minPartLength = 8;
/** A larger one is a bundle or an archive: nobody puts it into a URL. */
const maxEncodedLength = 32 * 1024;
const maxDepth = 16;

export function isSecretName(name: string): boolean {
  return /TOKEN|SECRET|PASSW|PASSPHRASE|PRIVATE|CREDENTIAL|API_?KEY|ACCESS_?KEY|KEY-DATA/i.test(name);
}

export function formsOf(value: string): readonly string[] {
  const secret = value.trim();
  const forms = new Set<string>(spelled(secret));
  // A tool that repeats a key or a kubeconfig does so line by line.
  const lines = secret.includes("\n") ? secret.split("\n").map((line) => line.trim()) : [];
  for (const line of lines) for (const form of spelled(line)) forms.add(form);
  for (const form of encoded(secret)) forms.add(form);
  for (const part of [...partsOfJson(secret), ...partsOfLines(lines)]) {
    for (const form of [...part.split("\n").flatMap(spelled), ...spelled(part), ...encoded(part)]) forms.add(form);
  }
  return [...forms].filter((form) => form.length >= minLength);
}

/** As it is, and as JSON strings of JavaScript and of Go have it. */
function spelled(text: string): string[] {
  const quoted = JSON.stringify(text).slice(1, -1);
  const ofGo = quoted.replaceAll(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
  return [text, quoted, ofGo];
}

function encoded(secret: string): string[] {
  if (secret.length < minPartLength || secret.length > maxEncodedLength) return [];
  const component = encodeURIComponent(secret.toWellFormed());
  const strict = component.replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  return [component, strict, strict.replaceAll("%20", "+"), ...base64Of(secret)];
}

/**
 * Alone or behind something else, as in the header of a user and a password: what precedes it shifts its bits, in one of
 * three ways. The characters at both ends, which neighbours have a part in, are left out.
 */
function base64Of(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString("base64")
      .replaceAll("=", "");
    const isShared = (shift + bytes.length) % 3 !== 0;
    const own = text.slice(shift === 0 ? 0 : shift + 1, isShared ? -1 : text.length);
    return [own, own.replaceAll("+", "-").replaceAll("/", "_")];
  });
}

function partsOfJson(text: string): string[] {
  if (!text.startsWith("{") && !text.startsWith("[")) return [];
  try {
    return secretsIn(JSON.parse(text), { name: "", depth: 0 });
  } catch {
    return [];
  }
}

interface Place {
  readonly name: string;
  readonly depth: number;
}

function secretsIn(value: unknown, { name, depth }: Place): string[] {
  if (typeof value === "string") return isSecretPart(name, value) ? [value.trim()] : [];
  if (typeof value !== "object" || value === null || depth > maxDepth) return [];
  // The items of a list are of its name.
  return Object.entries(value).flatMap(([key, inner]) =>
    secretsIn(inner, { name: Array.isArray(value) ? name : key, depth: depth + 1 }),
  );
}

/** Of files in which each line gives a name its value: kubeconfigs, profiles of clouds, lists of variables. */
function partsOfLines(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const [, name = "", value = ""] = /^(?:- )?["']?([\w.-]+)["']?\s*[:=]\s*["']?(.*?)["']?,?$/.exec(line) ?? [];
    return isSecretPart(name, value) ? [value] : [];
  });
}

/** Where a secret is, or how it is used: words that the program needs in its own messages. */
const isAboutSecret =
  /^existing|(name|ref|file|path|policy|type|mode|audience|endpoint|provider|store|class|enabled)$/i;

function isSecretPart(name: string, value: string): boolean {
  return (
    isSecretName(name) &&
    !isAboutSecret.test(name) &&
    value.trim().length >= minPartLength &&
    !/^https?:\/\//.test(value)
  );
}
