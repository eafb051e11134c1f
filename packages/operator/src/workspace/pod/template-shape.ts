/**
 * Templates are validated by the API server. The fields that the operator itself reads before that must have the expected
 * types. Pure.
 */
import { isRecord } from "@pko/rpc";

type Shape = "text" | "number" | { readonly list: Shape } | { readonly fields: Readonly<Record<string, Shape>> };

const fieldsOf = (fields: Readonly<Record<string, Shape>> = {}): Shape => ({ fields });
const listOf = (list: Shape): Shape => ({ list });
const texts = listOf("text");

const confinement = {
  seccompProfile: fieldsOf(),
  seLinuxOptions: fieldsOf(),
  windowsOptions: fieldsOf(),
  appArmorProfile: fieldsOf(),
};
const named = fieldsOf({ name: "text" });
const keyed = fieldsOf({ name: "text", key: "text" });
const withItems = { items: listOf(fieldsOf({ key: "text" })) };

const handler = fieldsOf({ httpGet: fieldsOf({ host: "text" }), tcpSocket: fieldsOf({ host: "text" }) });

const container = fieldsOf({
  name: "text",
  env: listOf(
    fieldsOf({
      name: "text",
      value: "text",
      valueFrom: fieldsOf({ secretKeyRef: keyed, configMapKeyRef: keyed }),
    }),
  ),
  envFrom: listOf(fieldsOf({ prefix: "text", secretRef: named, configMapRef: named })),
  ports: listOf(fieldsOf({ hostPort: "number" })),
  volumeMounts: listOf(fieldsOf({ name: "text", mountPath: "text" })),
  resources: fieldsOf({ requests: fieldsOf(), limits: fieldsOf() }),
  livenessProbe: handler,
  readinessProbe: handler,
  startupProbe: handler,
  lifecycle: fieldsOf({ postStart: handler, preStop: handler }),
  securityContext: fieldsOf({ capabilities: fieldsOf({ add: texts, drop: texts }), ...confinement }),
});

const podTemplate = fieldsOf({
  metadata: fieldsOf({ labels: fieldsOf(), annotations: fieldsOf() }),
  spec: fieldsOf({
    containers: listOf(container),
    initContainers: listOf(container),
    volumes: listOf(
      fieldsOf({
        name: "text",
        emptyDir: fieldsOf({ medium: "text" }),
        secret: fieldsOf({ secretName: "text", ...withItems }),
        configMap: fieldsOf({ name: "text", ...withItems }),
        projected: fieldsOf({
          sources: listOf(
            fieldsOf({
              secret: fieldsOf({ name: "text", ...withItems }),
              configMap: fieldsOf({ name: "text", ...withItems }),
            }),
          ),
        }),
      }),
    ),
    securityContext: fieldsOf({ sysctls: listOf(named), ...confinement }),
  }),
});

const service = fieldsOf({ metadata: fieldsOf({ labels: fieldsOf(), annotations: fieldsOf() }), spec: fieldsOf() });

/** Sentences, each with the field that is wrong. */
export const podTemplateFaults = (value: unknown): string[] => faults(value, podTemplate, "spec.podTemplate");
export const serviceFaults = (value: unknown): string[] => faults(value, service, "spec.serviceTemplate");

function faults(value: unknown, shape: Shape, path: string): string[] {
  if (value === undefined || value === null) return [];
  if (shape === "text") return typeof value === "string" ? [] : [`${path}: is not a string`];
  if (shape === "number") return typeof value === "number" ? [] : [`${path}: is not a number`];
  if ("list" in shape) {
    if (!Array.isArray(value)) return [`${path}: is not a list`];
    return value.flatMap((each: unknown, index) =>
      each === null ? [`${path}[${index}]: is empty`] : faults(each, shape.list, `${path}[${index}]`),
    );
  }
  if (!isRecord(value)) return [`${path}: is not an object`];
  return Object.entries(shape.fields).flatMap(([name, below]) => faults(value[name], below, `${path}.${name}`));
}
