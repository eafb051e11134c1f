/** The sizes and times both ends agree on: whatever exceeds them is refused, not buffered. */

/** The largest request body: a Program object is at most 1.5 MiB, its config and files travel with it. */
export const maxBodyBytes = 8 * 1024 * 1024;
/** The largest line of a stream, and so the largest single stack output. */
export const maxLineBytes = 2 * 1024 * 1024;
/** The longest message of a diagnostic or an error. */
export const maxMessageChars = 16 * 1024;
/** The most lines of a program's own error that a result carries. */
export const maxErrorLines = 40;
/** How much of the end of a command's output a result carries. */
export const maxOutputTailChars = 64 * 1024;

/** A stream with nothing to say says so this often; a reader that hears nothing for three beats hangs up. */
export const heartbeatMs = 5_000;
export const silenceMs = 3 * heartbeatMs;
/** How long a single answer may take. Long work streams instead. */
export const callTimeoutMs = 20_000;
