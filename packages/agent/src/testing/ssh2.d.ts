/** The part of `ssh2` that the test server uses. */
declare module "ssh2" {
  import type { Duplex } from "node:stream";

  interface AuthContext {
    readonly method: string;
    readonly key?: { readonly data: Buffer };
    accept(): void;
    reject(methods: string[]): void;
  }

  interface Channel extends Duplex {
    exit(code: number): void;
  }

  interface Session {
    on(event: "env", listener: (accept?: () => void) => void): void;
    on(
      event: "exec",
      listener: (accept: () => Channel, reject: () => void, info: { readonly command: string }) => void,
    ): void;
  }

  interface Connection {
    on(event: "error", listener: (error: Error) => void): void;
    on(event: "authentication", listener: (context: AuthContext) => void): void;
    on(event: "session", listener: (accept: () => Session) => void): void;
  }

  class Server {
    constructor(options: { readonly hostKeys: readonly string[] }, listener: (connection: Connection) => void);
    listen(port: number, host: string, listener: () => void): void;
    address(): { readonly port: number };
    close(): void;
  }

  const ssh2: { readonly Server: typeof Server };
  export default ssh2;
}
