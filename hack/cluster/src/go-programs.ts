/**
 * The environment of Go programs on this machine: Kubernetes, Helm, the Pulumi CLI and its language hosts. They collect
 * garbage a quarter as often, which saves them up to a fifth of their CPU: a run of all tests is limited by CPU, not by memory.
 */
export const goProgramEnv = { GOGC: "400" } as const;

/**
 * Flags for every Go program that is built here. With the same flags, Go compiles a package that several programs need once. The linker
 * drops the debug information; not to generate it saves the compiler about a tenth of its time.
 */
export const goBuildFlags = ["-mod=readonly", "-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false"] as const;

/** For builds of tests and examples. */
export const goBuildEnv = { CGO_ENABLED: "0", GOFLAGS: goBuildFlags.join(" ") } as const;
