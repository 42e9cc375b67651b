/**
 * A company's proxy: a forward proxy that opens tunnels (CONNECT) and forwards plain requests (absolute form). Only this proxy knows the names
 * of the servers in a test. It runs on a thread, so that its own connections are not those of the test's process.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';

export interface ForwardProxy {
  readonly port: number;
  /** Address with user and password, for HTTPS_PROXY. */
  readonly url: string;
  /** The request lines so far, such as `CONNECT models.company.example:443` and `GET http://models.company.example/`. */
  readonly requests: string[];
  /** Makes `authority` (`host:port`) lead to a server on loopback. */
  lead(authority: string, port: number): void;
  /** File with the authority that signs the certificates of all names `*.company.example`. */
  readonly caFile: string;
  close(): Promise<void>;
}

export interface ForwardProxyData {
  /** The value of the header `proxy-authorization`. */
  readonly authorization: string;
  /** Ports of plain servers on loopback, by `host:port`. */
  readonly servers: Readonly<Record<string, number>>;
  readonly key: string;
  readonly cert: string;
}

/**
 * Starts the proxy. `servers`: the ports of plain servers on loopback, by `host:port`. In a tunnel to port 443 of a name, the proxy ends TLS, so
 * that the server itself can be plain.
 */
export async function startForwardProxy(servers: Readonly<Record<string, number>>): Promise<ForwardProxy> {
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-forward-proxy-'));
  const { key, cert, caFile } = makeCertificate(folder);
  const credentials = 'clerk:a p@ss';
  const workerData: ForwardProxyData = {
    authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
    ...{ servers, key, cert },
  };
  const thread = new Worker(path.join(import.meta.dirname, 'forward-proxy-thread.ts'), { workerData });
  const [port] = (await once(thread, 'message')) as [number];
  const requests: string[] = [];
  thread.on('message', (line: string) => requests.push(line));
  return {
    port,
    url: `http://clerk:a%20p%40ss@127.0.0.1:${port}`,
    requests,
    lead: (authority, to) => thread.postMessage([authority, to]),
    caFile,
    close: async () => {
      await thread.terminate();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function makeCertificate(folder: string) {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const asAuthority = ['-subj', '/CN=Company', '-addext', 'basicConstraints=critical,CA:TRUE'];
  openssl('req', '-x509', ...newKey, ...asAuthority, '-keyout', 'ca.key', '-out', 'ca.pem');
  openssl('req', '-new', ...newKey, '-subj', '/CN=example', '-keyout', 'key.pem', '-out', 'request.pem');
  writeFileSync(path.join(folder, 'names'), 'subjectAltName=DNS:*.company.example\n');
  const signedBy = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names'];
  openssl('x509', '-req', '-in', 'request.pem', '-days', '30', '-out', 'cert.pem', ...signedBy);
  const read = (name: string) => readFileSync(path.join(folder, name), 'utf8');
  return { key: read('key.pem'), cert: read('cert.pem'), caFile: path.join(folder, 'ca.pem') };
}
