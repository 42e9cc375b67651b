/** Forwards connections of the pods in a test to servers of this machine. */
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';

/** Makes forwarders, which end together with `close`. */
export function makeForwarders() {
  const servers: net.Server[] = [];
  const listen = async (server: net.Server, host: string, port: number): Promise<number> => {
    servers.push(server.listen(port, host));
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  return {
    /** Listens at the address `host`, and forwards each connection to the address that `target` returns. Returns the port. */
    forward: (host: string, port: number, target: () => { host: string; port: number }): Promise<number> =>
      listen(
        net.createServer((from) => {
          const to = net.connect(target());
          from.on('error', () => to.destroy()).pipe(to);
          to.on('error', () => from.destroy()).pipe(from);
        }),
        host,
        port,
      ),
    /**
     * Listens at the address `host`, and adds TLS, and nothing else, to the requests that it forwards to `origin`: the shell of a pod has
     * no TLS. Returns its own origin.
     */
    async addTls(host: string, origin: string): Promise<string> {
      const agent = new https.Agent({ rejectUnauthorized: false });
      const front = http.createServer((request, response) => {
        https
          .get(`${origin}${request.url}`, { agent }, (answer) => {
            response.writeHead(answer.statusCode ?? 500);
            answer.pipe(response);
          })
          .on('error', () => response.destroy());
      });
      return `http://${host}:${await listen(front, host, 0)}`;
    },
    close: (): void => {
      for (const server of servers) server.close();
    },
  };
}
