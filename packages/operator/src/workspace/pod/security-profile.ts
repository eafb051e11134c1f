/**
 * The security profile, enforced on the merged pod: fields that a template does not set are filled in, and violations are
 * refused with the field's name. The rules are those of the Pod Security Standards of the same names.
 * An operator that does not enforce profiles only fills in.
 */
import type { SecurityProfile } from "@pko/api";
import type { Container, PodSpec, PodTemplateSpec, SecurityContext } from "kubernetes-types/core/v1";

interface Enforced {
  readonly template: PodTemplateSpec;
  /** Sentences, each with the field that is wrong. */
  readonly violations: readonly string[];
}

export function enforceProfile(template: PodTemplateSpec, profile: SecurityProfile): Enforced {
  const { spec } = template;
  if (!spec) return { template, violations: [] };
  const filled = profile === "restricted" ? restricted(spec) : spec;
  const found = [...baselineViolations(filled), ...(profile === "restricted" ? restrictedViolations(filled) : [])];
  const violations = [
    ...annotationViolations(template).map((violation) => `metadata.${violation}`),
    ...found.map((violation) => `spec.${violation}`),
  ].map((violation) => `spec.podTemplate.${violation}, which the security profile ${profile} forbids`);
  return { template: { ...template, spec: filled }, violations };
}

/** Refuses nothing: the template takes precedence. */
export function fillProfile(template: PodTemplateSpec, profile: SecurityProfile): Enforced {
  const { spec } = template;
  if (!spec || profile !== "restricted") return { template, violations: [] };
  const filled = restricted(spec, (container) => confinedUnlessPrivileged(container, spec.securityContext?.runAsUser));
  return { template: { ...template, spec: filled }, violations: [] };
}

/** A container with its place in the template. */
interface Placed {
  readonly container: Container;
  readonly field: string;
}

function containersOf(spec: PodSpec): Placed[] {
  const placed = (list: "initContainers" | "containers"): Placed[] =>
    (spec[list] ?? []).map((container) => ({ container, field: `${list}[${container.name}]` }));
  return [...placed("initContainers"), ...placed("containers")];
}

/** Fills in the fields that `restricted` requires, unless they are set. */
function restricted(spec: PodSpec, confine = confined): PodSpec {
  const { initContainers } = spec;
  return {
    ...spec,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 1000,
      seccompProfile: { type: "RuntimeDefault" },
      ...withoutNulls(spec.securityContext),
    },
    ...(initContainers && { initContainers: initContainers.map(confine) }),
    containers: spec.containers.map(confine),
  };
}

function confined(container: Container): Container {
  const { capabilities, ...given } = container.securityContext ?? {};
  const drop = capabilities?.drop ?? [];
  return {
    ...container,
    securityContext: {
      allowPrivilegeEscalation: false,
      ...withoutNulls(given),
      capabilities: { ...capabilities, drop: drop.includes("ALL") ? drop : ["ALL", ...drop] },
    },
  };
}

/** Confining root or a privileged container halfway would be useless, or a contradiction that the API server rejects. */
function confinedUnlessPrivileged(container: Container, podUser: number | undefined): Container {
  const { securityContext: given = {} } = container;
  if ((given.runAsUser ?? podUser) === 0) {
    return { ...container, securityContext: { runAsNonRoot: false, ...withoutNulls(given) } };
  }
  const isPrivileged = given.privileged || given.capabilities?.add?.some((name) => name !== "NET_BIND_SERVICE");
  return isPrivileged ? container : confined(container);
}

/** An explicit null is the same as an unset field. */
function withoutNulls<T extends object>(value: T | undefined): Partial<T> {
  const entries = Object.entries(value ?? {}).filter(([, each]) => each !== null && each !== undefined);
  return Object.fromEntries(entries) as Partial<T>;
}

const baselineCapabilities = new Set([
  "AUDIT_WRITE",
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "MKNOD",
  "NET_BIND_SERVICE",
  "SETFCAP",
  "SETGID",
  "SETPCAP",
  "SETUID",
  "SYS_CHROOT",
]);

const safeSysctls = new Set([
  "kernel.shm_rmid_forced",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.ip_unprivileged_port_start",
  "net.ipv4.tcp_syncookies",
  "net.ipv4.ping_group_range",
  "net.ipv4.ip_local_reserved_ports",
  "net.ipv4.tcp_keepalive_time",
  "net.ipv4.tcp_fin_timeout",
  "net.ipv4.tcp_keepalive_intvl",
  "net.ipv4.tcp_keepalive_probes",
  "net.ipv4.tcp_rmem",
  "net.ipv4.tcp_wmem",
]);

const selinuxTypes = new Set(["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"]);

function baselineViolations(spec: PodSpec): string[] {
  const shared = (["hostNetwork", "hostPID", "hostIPC"] as const).filter((field) => spec[field]);
  const sysctls = (spec.securityContext?.sysctls ?? []).filter(({ name }) => !safeSysctls.has(name));
  return [
    ...shared.map((field) => `${field} is true`),
    ...(spec.volumes ?? []).filter(({ hostPath }) => hostPath).map(({ name }) => `volumes[${name}] is a hostPath`),
    ...sysctls.map(({ name }) => `securityContext.sysctls sets ${name}`),
    ...confinementViolations(spec.securityContext ?? {}, ""),
    ...containersOf(spec).flatMap(baselineContainerViolations),
  ];
}

function baselineContainerViolations({ container, field }: Placed): string[] {
  const context = container.securityContext ?? {};
  const added = (context.capabilities?.add ?? []).filter((name) => !baselineCapabilities.has(name));
  const hostPorts = (container.ports ?? []).filter(({ hostPort }) => hostPort);
  return [
    ...(context.privileged ? [`${field}.securityContext.privileged is true`] : []),
    ...added.map((name) => `${field}.securityContext.capabilities adds ${name}`),
    ...hostPorts.map(({ hostPort }) => `${field}.ports uses the host port ${hostPort}`),
    ...(context.procMount && context.procMount !== "Default"
      ? [`${field}.securityContext.procMount is not Default`]
      : []),
    ...hostsCalled(container).map((host) => `${field} calls the host ${host} in a probe or hook`),
    ...confinementViolations(context, `${field}.`),
  ];
}

/** The kubelet would call them from the node's network. */
function hostsCalled({ livenessProbe, readinessProbe, startupProbe, lifecycle }: Container): string[] {
  const handlers = [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop];
  return handlers
    .flatMap((handler) => [handler?.httpGet?.host ?? "", handler?.tcpSocket?.host ?? ""])
    .filter((host) => host !== "");
}

/** The API server still reads AppArmor profiles from annotations if the field is not set. */
const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/";

function annotationViolations({ metadata }: PodTemplateSpec): string[] {
  const isAllowed = (profile: string): boolean =>
    profile === "" || profile === "runtime/default" || profile.startsWith("localhost/");
  return Object.entries(metadata?.annotations ?? {})
    .filter(([name, profile]) => name.startsWith(appArmorAnnotation) && !isAllowed(profile))
    .map(([name, profile]) => `annotations[${name}] is ${profile}`);
}

const appArmorTypes = new Set(["", "RuntimeDefault", "Localhost"]);

interface Confinement extends Pick<SecurityContext, "seccompProfile" | "seLinuxOptions" | "windowsOptions"> {
  /** Not in the type definitions yet. */
  readonly appArmorProfile?: { readonly type?: string };
}

/** The fields by which both pods and containers are confined. */
function confinementViolations(context: Confinement, at: string): string[] {
  const field = `${at}securityContext`;
  const { seccompProfile, seLinuxOptions, windowsOptions, appArmorProfile } = context;
  return [
    ...(seccompProfile?.type === "Unconfined" ? [`${field}.seccompProfile is Unconfined`] : []),
    ...unlessIn(appArmorTypes, appArmorProfile?.type, (type) => `${field}.appArmorProfile is ${type}`),
    ...(windowsOptions?.hostProcess ? [`${field}.windowsOptions.hostProcess is true`] : []),
    ...(seLinuxOptions?.user || seLinuxOptions?.role ? [`${field}.seLinuxOptions sets a user or a role`] : []),
    ...unlessIn(selinuxTypes, seLinuxOptions?.type, (type) => `${field}.seLinuxOptions sets the type ${type}`),
  ];
}

/** An unset value is allowed. */
const unlessIn = (
  allowed: ReadonlySet<string>,
  value: string | undefined,
  describe: (value: string) => string,
): string[] => (value === undefined || allowed.has(value) ? [] : [describe(value)]);

const restrictedVolumes = new Set([
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "image",
  "persistentVolumeClaim",
  "projected",
  "secret",
]);

function restrictedViolations(spec: PodSpec): string[] {
  const volumes = (spec.volumes ?? []).flatMap(({ name, ...source }) =>
    Object.keys(source)
      .filter((kind) => kind !== "hostPath" && !restrictedVolumes.has(kind))
      .map((kind) => `volumes[${name}] has the type ${kind}`),
  );
  return [
    ...volumes,
    ...identityViolations(spec.securityContext ?? {}, ""),
    ...containersOf(spec).flatMap(restrictedContainerViolations),
  ];
}

function restrictedContainerViolations({ container, field }: Placed): string[] {
  const context = container.securityContext ?? {};
  const added = (context.capabilities?.add ?? []).filter(
    (name) => name !== "NET_BIND_SERVICE" && baselineCapabilities.has(name),
  );
  return [
    ...(context.allowPrivilegeEscalation ? [`${field}.securityContext.allowPrivilegeEscalation is true`] : []),
    ...added.map((name) => `${field}.securityContext.capabilities adds ${name}`),
    ...identityViolations(context, `${field}.`),
  ];
}

function identityViolations({ runAsNonRoot, runAsUser }: SecurityContext, at: string): string[] {
  return [
    ...(runAsNonRoot === false ? [`${at}securityContext.runAsNonRoot is false`] : []),
    ...(runAsUser === 0 ? [`${at}securityContext.runAsUser is 0`] : []),
  ];
}
