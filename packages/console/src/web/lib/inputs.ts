/** The inputs of a Stack's program, and where each comes from. Values of secrets are never shown. Pure. */
import { describeSource, withoutPassword, type Stack, type StackSpec } from "@pko/api/browser";

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
    ...programFacts(spec),
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

function programFacts(spec: StackSpec): Inputs["source"] {
  const { projectRepo, repoDir = "" } = spec;
  if (!projectRepo) return [{ label: "Program", value: describeSource(spec) }];
  const { tag = "", branch = "", commit = "" } = spec;
  return [
    { label: "Repository", value: withoutPassword(projectRepo) },
    { label: "Tag", value: tag },
    { label: "Branch", value: branch },
    { label: "Commit", value: commit },
    { label: "Directory", value: repoDir },
  ];
}

function rowsOf(spec: StackSpec): InputRow[] {
  return [...configurationRows(spec), ...secretRows(spec), ...environmentRows(spec)].toSorted(
    (a, b) => a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name),
  );
}

function configurationRows({ config = {}, configRef, configRefs }: StackSpec): InputRow[] {
  const kind = "configuration";
  const literal = Object.entries(config).map(([name, value]): InputRow => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return { name, kind, origin: "spec.config", value: text };
  });
  const referenced = Object.entries({ ...configRef, ...configRefs }).map(([name, ref]): InputRow => {
    return { name, kind, origin: `ConfigMap ${ref.name}, key ${ref.key}` };
  });
  return [...literal, ...referenced];
}

function secretRows({ secretsRef = {}, secrets = {} }: StackSpec): InputRow[] {
  const kind = "secret configuration";
  const referenced = Object.entries(secretsRef).map(([name, ref]): InputRow => {
    const { value: _, ...shown } = originOf(ref);
    return Object.assign(shown, { name, kind } as const);
  });
  const origin = "spec.secrets (deprecated: in plain text)";
  return [...referenced, ...Object.keys(secrets).map((name): InputRow => ({ name, kind, origin }))];
}

function environmentRows(spec: StackSpec): InputRow[] {
  const referenced = Object.entries(spec.envRefs ?? {}).map(([name, ref]): InputRow =>
    Object.assign(originOf(ref), { name, kind: "environment" } as const),
  );
  return [...referenced, ...wholeObjects(spec)];
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
type Origin = Pick<InputRow, "origin" | "value" | "stack">;

function originOf({ type, secret, configMap, stack = "", output = "", literal }: Reference): Origin {
  switch (type) {
    case "Secret":
      return { origin: `Secret ${secret?.name ?? ""}, key ${secret?.key ?? ""}` };
    case "ConfigMap":
      return { origin: `ConfigMap ${configMap?.name ?? ""}, key ${configMap?.key ?? ""}` };
    case "StackOutput":
      return { origin: `output ${output} of Stack ${stack}`, stack };
    default:
      return { origin: "literal in the spec", ...(literal && { value: literal.value }) };
  }
}
