/**
 * The forms of a secret in an output: literal, line by line, encoded in JSON, in a URL or in base64; and secrets inside a
 * document, such as the private key in a cloud service account's JSON.
 */

/** Shorter secrets are ordinary words: masking them would make a log unreadable and protect nothing. */
const minLength = 6;
/** The minimum for parts of a document and for encoded forms: shorter ones would match unrelated text. */
const minPartLength = 8;
/** A longer secret is a bundle or an archive, which does not appear in URLs. */
const maxEncodedLength = 32 * 1024;
const maxDepth = 16;

export function isSecretName(name: string): boolean {
  return /TOKEN|SECRET|PASSW|PASSPHRASE|PRIVATE|CREDENTIAL|API_?KEY|ACCESS_?KEY|KEY-DATA/i.test(name);
}

export function secretForms(value: string): readonly string[] {
  const secret = value.trim();
  const forms = new Set<string>(literalForms(secret));
  // Tools print a key or a kubeconfig line by line.
  const lines = secret.includes("\n") ? secret.split("\n").map((line) => line.trim()) : [];
  for (const line of lines) for (const form of literalForms(line)) forms.add(form);
  for (const form of encodedForms(secret)) forms.add(form);
  for (const part of [...partsOfJson(secret), ...partsOfLines(lines)]) {
    for (const form of [...part.split("\n").flatMap(literalForms), ...literalForms(part), ...encodedForms(part)])
      forms.add(form);
  }
  return [...forms].filter((form) => form.length >= minLength);
}

/** The literal text, and its JSON encodings by JavaScript and by Go. */
function literalForms(text: string): string[] {
  const quoted = JSON.stringify(text).slice(1, -1);
  const quotedByGo = quoted.replaceAll(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`);
  return [text, quoted, quotedByGo];
}

function encodedForms(secret: string): string[] {
  if (secret.length < minPartLength || secret.length > maxEncodedLength) return [];
  const component = encodeURIComponent(secret.toWellFormed());
  const strict = component.replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  return [component, strict, strict.replaceAll("%20", "+"), ...base64Forms(secret)];
}

/**
 * The base64 forms of a secret, alone or after other text, as in a header with user and password: the preceding bytes
 * shift its bits in one of three ways. Characters at both ends that depend on adjacent bytes are omitted.
 */
function base64Forms(secret: string): string[] {
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
  // The items of a list inherit the list's name.
  return Object.entries(value).flatMap(([key, inner]) =>
    secretsIn(inner, { name: Array.isArray(value) ? name : key, depth: depth + 1 }),
  );
}

/** For files with a name and a value on each line: kubeconfigs, cloud profiles, lists of variables. */
function partsOfLines(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const [, name = "", value = ""] = /^(?:- )?["']?([\w.-]+)["']?\s*[:=]\s*["']?(.*?)["']?,?$/.exec(line) ?? [];
    return isSecretPart(name, value) ? [value] : [];
  });
}

/** Names of values that describe a secret's location or use: they are not secret, and messages may need them. */
const isAboutSecret =
  /^existing|(name|ref|file|path|policy|type|mode|audience|endpoint|provider|store|class|enabled)$/i;

/** Whether a property with this name has a secret as its value. */
export function describesSecret(name: string): boolean {
  return isSecretName(name) && !isAboutSecret.test(name);
}

/**
 * A name before its value in a text: `password=…`, `"token":"…"`, `token: …`, but not the parts of an ARN or of an image's tag.
 * It starts where a word does, so that the search is linear.
 */
const nameBeforeValue = /(?<![\w.:/-])([\w.-]+)\\*["']?[ \t]*(?:=|:(?=[ \t"'\\])|(?<=["']):)[ \t]*/g;
/** A value: in quotes, to the end of a line of YAML, or one word. */
const valueAfterName = /(\\+")[^"]*|(")(?:[^"\\]|\\.)*|(')[^']*|(?<=^[ \t-]*[\w.-]+[ \t]*:[ \t]+).*|[^\s"',;&]+/my;

/** Masks what follows the name of a secret. */
export function maskNamedSecrets(text: string, mask: string): string {
  let [masked, end] = ["", 0];
  for (const { 0: found, 1: name = "", index } of text.matchAll(nameBeforeValue)) {
    if (index < end || !describesSecret(name)) continue;
    valueAfterName.lastIndex = index + found.length;
    const value = valueAfterName.exec(text);
    if (!value) continue;
    masked += text.slice(end, value.index) + (value[1] ?? value[2] ?? value[3] ?? "") + mask;
    end = valueAfterName.lastIndex;
  }
  return masked + text.slice(end);
}

function isSecretPart(name: string, value: string): boolean {
  return describesSecret(name) && value.trim().length >= minPartLength && !/^https?:\/\//.test(value);
}
