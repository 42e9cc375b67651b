import { randomInt } from 'node:crypto';
import net from 'node:net';

/**
 * Returns a port of 127.0.0.1 on which no process listens at this moment. The port is below 32768. Linux does not use such ports for
 * connections or for programs that ask for any port, so the port stays free until the test uses it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_768);
    const server = net.createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
