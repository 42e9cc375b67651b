import net from 'node:net';

/**
 * Returns the origin with which programs on this machine can connect to a service that listens on `host`. If `host` means all
 * addresses, the origin has the loopback address.
 */
export function reachableOrigin(host: string, port: number): string {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${net.isIPv6(reached) ? `[${reached}]` : reached}:${port}`;
}

export type PortCheck = { ok: true; port: number } | { ok: false; code: string };

/** Checks whether a server can listen on this host and port now. For port 0, returns a free port. */
export function checkPort(host: string, port: number): Promise<PortCheck> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve({ ok: false, code: error.code ?? 'unknown' }));
    server.listen({ host, port }, () => {
      const address = server.address();
      const found = typeof address === 'object' && address ? address.port : port;
      server.close(() => resolve({ ok: true, port: found }));
    });
  });
}

/** Returns the message about a failed check of a port. */
export function portProblem(host: string, port: number, code: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is in use by another program. Use another port: RUNYARD_PORT=${port === 65535 ? port - 1 : port + 1}, or RUNYARD_PORT=0 for any free port.`;
    case 'EACCES':
      return `this user may not listen on port ${port} (${host}). Take one above 1023: RUNYARD_PORT=4180.`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine. Set RUNYARD_HOST to one, or unset it to use 127.0.0.1.`;
    default:
      return `cannot listen on ${host} port ${port}: ${code}`;
  }
}
