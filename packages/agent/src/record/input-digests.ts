/**
 * Digests of a run's inputs: two runs with equal digests had equal inputs. Everyone who may read a record can try to guess
 * what a digest was made of, so secret values are left out, and of environment variables only the names count.
 */
import { canonicalJson } from "@pko/rpc";
import { parse } from "yaml";
import { stableEnvironment } from "../plans/environment.ts";
import type { PulumiCli } from "../pulumi/cli.ts";
import { textDigest } from "../system/digest.ts";
import { readIfExists } from "../system/files.ts";
import { describesSecret } from "../system/secret-forms.ts";
import type { RunTarget } from "../workspace/state.ts";

interface InputContext {
  readonly cli: Pick<PulumiCli, "ownEnvironment" | "redactor">;
  readonly hostname: string;
  /** The image of the pod's container. */
  readonly image?: string | undefined;
}

export async function inputDigests(target: RunTarget, context: InputContext): Promise<Record<string, string>> {
  const { cli, hostname, image } = context;
  const env = stableEnvironment(await cli.ownEnvironment(), { hostname, addresses: [] });
  const settings: unknown = parse((await readIfExists(target.settings)) ?? "", { logLevel: "error" });
  const configuration = cli.redactor.clean(canonicalJson(withoutSecrets(settings, "") ?? null));
  return {
    ...(target.contents !== undefined && { program: textDigest(target.contents) }),
    configuration: textDigest(configuration),
    environment: textDigest(canonicalJson(Object.keys(env).toSorted())),
    ...(image !== undefined && { image: textDigest(image) }),
  };
}

/** Ciphertexts differ between pods, and keys between stacks. */
const ignored: ReadonlySet<string> = new Set(["secure", "encryptionsalt", "encryptedkey", "secretsprovider"]);

/** `name` is without the namespace of a configuration key. */
function withoutSecrets(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, name));
  if (typeof value !== "object" || value === null) return describesSecret(name) ? null : value;
  const kept = Object.entries(value).filter(([key]) => !ignored.has(key));
  return Object.fromEntries(
    kept.map(([key, inner]) => [key, withoutSecrets(inner, key.slice(key.lastIndexOf(":") + 1))]),
  );
}
