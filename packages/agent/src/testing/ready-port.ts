/** The port that an agent reports in its log when it is ready. Agents of version 1 have another key for the message. */
export function readyPort(log: string): number | undefined {
  const port = /"(?:msg|message)":"agent ready"[^\n]*"port":(\d+)/.exec(log)?.[1];
  return port === undefined ? undefined : Number(port);
}
