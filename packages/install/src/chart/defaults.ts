/** The defaults of the chart's values, for `values.yaml` and for the quickstart manifest. */
import type { Static } from "typebox";

import { ChartValues } from "./values.ts";

export interface Field {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Field>>;
}

function defaultsOf(field: Field): unknown {
  if (field.default !== undefined) return field.default;
  const fields = Object.entries(field.properties ?? {});
  return Object.fromEntries(
    fields.filter(([name]) => name !== "global").map(([name, child]) => [name, defaultsOf(child)]),
  );
}

export const chartDefaults = defaultsOf(ChartValues as Field) as Static<typeof ChartValues>;
