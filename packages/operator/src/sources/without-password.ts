/** The URL of a repository for messages. A password may contain `@`: what follows the last one is the host. */
export function withoutPassword(url: string): string {
  return url.replace(/^(\w+:\/\/)[^/]*@/, "$1");
}
