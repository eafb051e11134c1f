/** The size and time limits of both sides: what exceeds them is rejected, not buffered. */

/** The largest body: a Program object has at most 1.5 MiB, and the request adds configuration and files. */
export const maxBodyBytes = 8 * 1024 * 1024;
/** The largest line of a stream, and so the largest single stack output. */
export const maxLineBytes = 2 * 1024 * 1024;
/** How many lines of a program's error a result has at most. */
export const maxErrorLines = 40;
/** How much of the end of a command's output a result has at most. */
export const maxOutputTailChars = 64 * 1024;
/** The largest sealed plan, in characters of base64: it has to fit into the body of a start request. */
export const maxPlanChars = 6 * 1024 * 1024;
/** The largest part of a sealed plan: it has to fit into a Secret, which has at most 1 MiB. */
export const maxPlanPartChars = 960 * 1024;

/** The interval of heartbeats on an idle stream; a reader that misses three of them disconnects. */
export const heartbeatMs = 5_000;
export const silenceMs = 3 * heartbeatMs;
/** How long a call may take. Longer work uses a stream. */
export const callTimeoutMs = 20_000;
