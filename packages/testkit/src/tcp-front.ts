/** The outer half of the fault proxy: forwards bytes between clients and the inner half, and injects connection faults. */
import { connect, createServer, type Server, type Socket } from "node:net";

interface Connection {
  readonly client: Socket;
  readonly inner: Socket;
  frozen: boolean;
}

export interface TcpFront {
  readonly port: number;
  /** Open connections stay open but transfer nothing in either direction; new ones work. Returns how many. */
  freezeOpen(): number;
  /** Open and new connections transfer nothing until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Ends all connections. */
  cut(): void;
  /** Ends the connection with this port on the inner half. */
  cutOne(innerPort: number): void;
  /** New connections are refused, until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  close(): Promise<void>;
}

export async function tcpFront(innerPort: number, port: number): Promise<TcpFront> {
  const connections = new Set<Connection>();
  let frozen = false;
  const accept = (client: Socket): void => {
    const connection = join(client, innerPort, () => connections.delete(connection));
    connections.add(connection);
    if (frozen) setFrozen(connection, true);
  };
  let server = await listen(accept, port);
  const freezeAll = (value: boolean): void => connections.forEach((connection) => setFrozen(connection, value));
  const cut = (): void => connections.forEach(end);
  const refuse = async (): Promise<void> => {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return {
    port,
    freezeOpen() {
      freezeAll(true);
      return connections.size;
    },
    freeze() {
      frozen = true;
      freezeAll(true);
    },
    thaw() {
      frozen = false;
      freezeAll(false);
    },
    cut,
    cutOne: (innerPort) => connections.forEach((one) => one.inner.localPort === innerPort && end(one)),
    async refuse() {
      const closed = refuse();
      cut();
      await closed;
    },
    async accept() {
      server = await listen(accept, port);
    },
    async close() {
      const closed = server.listening ? refuse() : undefined;
      cut();
      await closed;
    },
  };
}

async function listen(accept: (client: Socket) => void, port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: false }, accept);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1" }, resolve);
  });
  return server;
}

function join(client: Socket, innerPort: number, onEnd: () => void): Connection {
  const inner = connect({ port: innerPort, host: "127.0.0.1" });
  const connection: Connection = { client, inner, frozen: false };
  client.on("data", (data) => void inner.write(data));
  inner.on("data", (data) => void client.write(data));
  for (const socket of [client, inner]) {
    socket.on("error", () => {});
    socket.on("close", () => {
      // A frozen client does not notice that the other side has closed.
      if (connection.frozen && socket === inner) return;
      end(connection);
      onEnd();
    });
  }
  return connection;
}

function setFrozen(connection: Connection, frozen: boolean): void {
  connection.frozen = frozen;
  for (const socket of [connection.client, connection.inner]) {
    if (frozen) socket.pause();
    else socket.resume();
  }
  if (!frozen && connection.inner.destroyed) end(connection);
}

function end({ client, inner }: Connection): void {
  client.destroy();
  inner.destroy();
}
