/**
 * The environment of Go programs on this machine: Kubernetes, Helm, the Pulumi CLI and its language hosts. They collect
 * garbage a quarter as often, which saves them up to a fifth of their CPU: a run of all tests is limited by CPU, not by memory.
 */
export const goProgramEnv = { GOGC: "400" } as const;
