/** Credentials that can be recognized by their form, in texts that others may read. Pure. */

/** Groups 1 and 2 surround what is masked. No pattern needs more than linear time: texts may be long and hostile. */
const patterns: readonly RegExp[] = [
  /()-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)()/g,
  /()\bpul-[0-9a-f]{40}\b()/g,
  /()\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}\b()/g,
  /()\bgithub_pat_\w{20,}\b()/g,
  /()\bglpat-[\w-]{20,}()/g,
  /()\bxox[abeoprs]-[\w-]{10,}()/g,
  /()\bnpm_[A-Za-z0-9]{36}\b()/g,
  /()\bAIza[\w-]{35}()/g,
  /()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b()/g,
  // A JSON Web Token.
  /()(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]+()/g,
  /\b((?:bearer|token|basic) +)[\w.~+/-]{16,}=*()/gi,
  // User and password in a URL. A password may contain an unescaped `@`.
  /(:\/\/)[^\s/@:"]*:[^\s/"]+(@)/g,
  // A token in place of a user.
  /(\bhttps?:\/\/)[^\s/@:"?#]+(@)/gi,
];

/** The default mask is that of logs and traces. */
export function maskCredentials(text: string, mask = "[secret]"): string {
  return patterns.reduce((masked, pattern) => masked.replaceAll(pattern, `$1${mask}$2`), text);
}
