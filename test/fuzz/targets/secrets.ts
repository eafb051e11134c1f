/** Output of tools, in which secrets are masked. */
import { maskCredentials } from "@pko/records";

import { escapeControls, lastChars, lastLines, truncate } from "../../../packages/agent/src/system/clean-text.ts";
import { Redactor } from "../../../packages/agent/src/system/redact.ts";
import { maskNamedSecrets, secretForms } from "../../../packages/agent/src/system/secret-forms.ts";
import { hold, secret, textOf, type Target } from "../engine/target.ts";

const encoded = Buffer.from(`user:${secret}`).toString("base64");
const redactor = new Redactor();
redactor.add(secret, "line one of a key\nline two of a key");

function check(input: Uint8Array): void {
  const text = textOf(input);
  const cleaned = redactor.clean(text);
  hold(!cleaned.includes(secret), "a secret is masked");
  hold(cleaned.isWellFormed(), "text is well-formed");
  for (const cut of [7, 64]) {
    hold(truncate(cleaned, cut).length <= cut && truncate(cleaned, cut).isWellFormed(), "text is truncated");
    const tail = redactor.clean({ text: secret.slice(cut % 9) + text, isCutAtStart: true });
    hold(!tail.startsWith(secret.slice(cut % 9)), "the end of a secret is masked");
    const head = redactor.clean({ text: withoutEscapes(text) + secret.slice(0, 5 + (cut % 9)), isCutAtEnd: true });
    hold(!head.endsWith(secret.slice(0, 5 + (cut % 9))), "the start of a secret is masked");
    hold(lastChars(cleaned, cut).length <= cut, "text is truncated at its start");
  }
  lastLines(escapeControls(cleaned), 3);
  maskCredentials(text, "[secret]");
  maskNamedSecrets(text, "[secret]");
  checkForms(text);
}

/** Any text can be a secret. */
function checkForms(text: string): void {
  if (text.length > 1024) return void secretForms(text);
  const own = new Redactor();
  own.add(text);
  const value = withoutEscapes(text).trim();
  if (value.length < 8 || "[secret]".includes(value)) return;
  const quoted = JSON.stringify({ value });
  hold(!own.clean(`before ${text} after`).includes(value), "any secret is masked");
  hold(!own.clean(quoted).includes(quoted.slice(10, -2)), "any secret in JSON is masked");
}

// oxlint-disable-next-line no-control-regex -- it must match escape sequences
const withoutEscapes = (text: string): string => text.replaceAll(/\u001B\[[0-9;]*[A-Za-z]/g, "").toWellFormed();

export const secretsTarget: Target = {
  name: "secrets",
  form: "text",
  seeds: [
    `error: the token ${secret} is invalid\n\u001B[31mline two of a key\u001B[0m`,
    `Authorization: Basic ${encoded}\npassword=${secret}&x=1`,
    "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    "https://user:p@ss@host/path?token=abc eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    '{"client_secret":"abcdefgh","apiKey": \'x\', "nested":{"token": "multi\\nline"}}',
    "- name: DB_PASSWORD\n  value: abcdefgh\ntoken:   plain words to the end\n",
  ],
  words: [
    secret,
    encoded,
    "\u001B[0m",
    "ghp_",
    "eyJ",
    "://",
    "@",
    "token",
    "password: ",
    "bearer ",
    "-----BEGIN ",
    "PRIVATE KEY-----",
    "--",
    "[secret]",
  ],
  rounds: 3000,
  check,
};
