/**
 * The body of an apply. The API server parses it as YAML, which is stricter than JSON: some characters must be escaped
 * (DEL, most of U+0080 to U+009F, U+FFFE, U+FFFF), others end a line (U+0085, U+2028, U+2029), and a lone surrogate is not
 * allowed at all. A Pulumi program may print any of them, and its output ends up in the status.
 */
export function applyBody(body: object): string {
  return JSON.stringify(body).replaceAll(needsEscape, (found, loneSurrogate: string | undefined) => {
    if (loneSurrogate !== undefined) return "\\ufffd";
    return found.startsWith("\\") ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** Matches whole escapes, so that the text `\ud83d`, which JSON writes as `\\ud83d`, is not taken for a lone surrogate. */
const needsEscape = /\\(?:u(d[89a-f][0-9a-f]{2})|.)|[\u007F-\u009F\u2028\u2029\uFEFF\uFFFE\uFFFF]/g;

export const applyType = "application/apply-patch+yaml";
