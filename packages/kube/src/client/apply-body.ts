/**
 * The body of an apply. The API server reads it as YAML, which is stricter than JSON: some characters must not stand in it
 * as they are (DEL, most of U+0080 to U+009F, U+FFFE, U+FFFF), others end a line (U+0085, U+2028, U+2029), and half a
 * surrogate pair must not stand in it at all. A program may print any of them, and they end up in status.
 */
export function applyBody(body: object): string {
  return JSON.stringify(body).replaceAll(delicate, (found, half: string | undefined) => {
    if (half !== undefined) return "\\ufffd";
    return found.startsWith("\\") ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** Escapes are taken whole, so that the text `\ud83d`, which JSON writes as `\\ud83d`, is not taken for half a pair. */
const delicate = /\\(?:u(d[89a-f][0-9a-f]{2})|.)|[\u007F-\u009F\u2028\u2029\uFEFF\uFFFE\uFFFF]/g;

export const applyType = "application/apply-patch+yaml";
