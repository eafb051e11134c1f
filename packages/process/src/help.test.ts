import { expect, test } from "bun:test";

import { helpText, ownFlag } from "./help.ts";

test("the help shows every flag with its meaning, default and variable", () => {
  const text = helpText({
    usage: ["operator [flags]", "operator console [flags]"],
    about: "Runs Pulumi in Kubernetes.",
    flags: {
      image: { type: "string", help: "The image to run." },
      "log-level": { type: "string", default: "info", help: "How much to log." },
      "policy-pack": { type: "string", multiple: true, default: [], help: "A folder." },
      list: { type: "string", default: "", help: `A list of ${"words ".repeat(20)}.` },
      secure: { type: "boolean", default: false, help: "Uses HTTPS." },
    },
    variableOf: (flag) => `X_${flag.toUpperCase()}`,
  });
  expect(text).toBe(`Usage: operator [flags]
       operator console [flags]

Runs Pulumi in Kubernetes.

Flags:
  --image VALUE
      The image to run. [variable: X_IMAGE]
  --log-level VALUE
      How much to log. [default: info, variable: X_LOG-LEVEL]
  --policy-pack VALUE
      A folder. [variable: X_POLICY-PACK]
  --list VALUE
      A list of words words words words words words words words words words words words words words
      words words words words words words . [variable: X_LIST]
  --secure
      Uses HTTPS. [variable: X_SECURE]
  --help
      Prints this text.
  --version
      Prints the version.
`);
});

test.each([
  [["--agent-image=x", "--help"], "help"],
  [["-h"], "help"],
  [["--version"], "version"],
  [["--agent-image", "x"], undefined],
] as const)("%p requests %p", (args, flag) => {
  expect(ownFlag(args)).toBe(flag);
});
