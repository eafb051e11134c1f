/** The inputs of a Stack's program, and where each comes from. Values of secrets are never shown. Pure. */
import { describeSource, type Stack, type StackSpec } from "@pko/api/browser";

export interface InputRow {
  readonly name: string;
  readonly kind: "configuration" | "secret configuration" | "environment";
  readonly origin: string;
  /** Only of values that are in the spec and no secrets. */
  readonly value?: string;
  /** The Stack of the same namespace with the output. */
  readonly stack?: string;
}

export interface Inputs {
  readonly source: readonly { readonly label: string; readonly value: string }[];
  readonly rows: readonly InputRow[];
}

export function inputsOf({ spec, status }: Stack): Inputs {
  const { lastUpdate, currentUpdate } = status ?? {};
  const source = [
    { label: "Program", value: describeSource(spec) },
    { label: "Pulumi stack", value: spec.stack },
    { label: "Backend", value: spec.backend ?? "" },
    { label: "Secrets provider", value: spec.secretsProvider ?? "" },
    { label: "ESC environments", value: (spec.environment ?? []).join(", ") },
    { label: "Service account", value: spec.serviceAccountName ?? "" },
    { label: "Last attempted revision", value: lastUpdate?.lastAttemptedCommit ?? "" },
    { label: "Last successful revision", value: lastUpdate?.lastSuccessfulCommit ?? "" },
    { label: "Running revision", value: currentUpdate?.commit ?? "" },
  ];
  return { source: source.filter(({ value }) => value !== ""), rows: rowsOf(spec) };
}

function rowsOf(spec: StackSpec): InputRow[] {
  const config = Object.entries(spec.config ?? {}).map(([name, value]): InputRow => ({
    name,
    kind: "configuration",
    origin: "spec.config",
    value: typeof value === "string" ? value : JSON.stringify(value),
  }));
  const configMaps = Object.entries({ ...spec.configRef, ...spec.configRefs }).map(([name, ref]): InputRow => ({
    name,
    kind: "configuration",
    origin: `ConfigMap ${ref.name}, key ${ref.key}`,
  }));
  const secrets = Object.entries(spec.secretsRef ?? {}).map(([name, ref]): InputRow => ({
    name,
    kind: "secret configuration",
    ...originOf(ref, true),
  }));
  const plain = Object.keys(spec.secrets ?? {}).map((name): InputRow => ({
    name,
    kind: "secret configuration",
    origin: "spec.secrets (deprecated: in plain text)",
  }));
  const env = Object.entries(spec.envRefs ?? {}).map(([name, ref]): InputRow => ({
    name,
    kind: "environment",
    ...originOf(ref, false),
  }));
  return [...config, ...configMaps, ...secrets, ...plain, ...env, ...wholeObjects(spec)].toSorted(
    (a, b) => a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name),
  );
}

function wholeObjects({ envs = [], envSecrets = [], accessTokenSecret }: StackSpec): InputRow[] {
  const all = (kind: string, name: string): InputRow => ({
    name: "all keys",
    kind: "environment",
    origin: `${kind} ${name}`,
  });
  return [
    ...envs.map((name) => all("ConfigMap", name)),
    ...envSecrets.map((name) => all("Secret", name)),
    ...(accessTokenSecret
      ? [
          {
            name: "PULUMI_ACCESS_TOKEN",
            kind: "environment",
            origin: `Secret ${accessTokenSecret}, key accessToken`,
          } as const,
        ]
      : []),
  ];
}

type Reference = NonNullable<StackSpec["envRefs"]>[string];

function originOf(ref: Reference, isSecret: boolean): Pick<InputRow, "origin" | "value" | "stack"> {
  if (ref.type === "Secret") return { origin: `Secret ${ref.secret?.name ?? ""}, key ${ref.secret?.key ?? ""}` };
  if (ref.type === "ConfigMap") {
    return { origin: `ConfigMap ${ref.configMap?.name ?? ""}, key ${ref.configMap?.key ?? ""}` };
  }
  if (ref.type === "StackOutput") {
    return { origin: `output ${ref.output ?? ""} of Stack ${ref.stack ?? ""}`, ...(ref.stack && { stack: ref.stack }) };
  }
  const { value } = ref.literal ?? {};
  return { origin: "literal in the spec", ...(!isSecret && value !== undefined && { value }) };
}
