/**
 * Starts real proxies with TLS in front of a service of the tests. Their certificates are from an authority that only the tests know.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import path from 'node:path';
import { eventually } from './system.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** Files of a certificate for `localhost`, and of its authority. */
export interface Authority {
  readonly file: string;
  readonly folder: string;
}

/**
 * Makes a certificate authority, and a certificate for `localhost` that this authority signs. The certificate and its key have the file
 * names that the nginx and Caddy configurations in `deploy` expect.
 */
export function makeAuthority(folder: string): Authority {
  mkdirSync(folder, { recursive: true });
  const file = (name: string) => path.join(folder, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const asAuthority = ['-addext', 'basicConstraints=critical,CA:TRUE'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-subj',
    '/CN=Test',
    '-days',
    '90',
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    ...asAuthority,
  );
  openssl('req', '-new', ...newKey, '-subj', '/CN=localhost', '-keyout', 'privkey.pem', '-out', 'request.pem');
  writeFileSync(file('names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  const signedBy = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names'];
  openssl('x509', '-req', '-in', 'request.pem', '-days', '90', '-out', 'leaf.pem', ...signedBy);
  writeFileSync(file('fullchain.pem'), readFileSync(file('leaf.pem'), 'utf8') + readFileSync(file('ca.pem'), 'utf8'));
  return { file: file('ca.pem'), folder };
}

export interface ProxyOptions {
  /** Port of the proxy with TLS. */
  readonly port: number;
  /** A second port, on which the proxy redirects to TLS. */
  readonly plainPort: number;
  readonly servicePort: number;
  /** Port of another service on the same database. */
  readonly secondPort?: number;
  readonly authority: Authority;
  /** A new folder. */
  readonly folder: string;
}

export interface TlsProxy {
  readonly origin: string;
  stop(): Promise<void>;
}

const nginxFile = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/sbin/nginx'].find(existsSync);
const caddyFile = ['/usr/bin/caddy', '/usr/local/bin/caddy'].find(existsSync);

/**
 * The proxies whose configurations are in `deploy`. `problem` is the reason why the proxy cannot run on this machine, or null if it can.
 */
export const proxies = {
  nginx: {
    problem: nginxFile === undefined ? 'there is no nginx' : null,
    start: (options: ProxyOptions) =>
      startNginx(options, readFileSync(path.join(root, 'deploy/nginx/runyard.conf'), 'utf8')),
  },
  caddy: {
    problem: caddyFile === undefined ? 'there is no caddy' : null,
    start: startCaddy,
  },
} as const;

/**
 * Replaces the names, ports and files of a configuration by the values of the test. Throws if the configuration does not contain one of
 * them.
 */
function adapt(text: string, replacements: Readonly<Record<string, string>>): string {
  let result = text;
  for (const [from, to] of Object.entries(replacements)) {
    if (!result.includes(from)) throw new Error(`the configuration has no ${from}`);
    result = result.replaceAll(from, to);
  }
  return result;
}

/** A configuration as people first write it: it sets only TLS and the address of the service. */
export const plainNginx = `server {
    listen 443 ssl;
    ssl_certificate /etc/ssl/runyard/fullchain.pem;
    ssl_certificate_key /etc/ssl/runyard/privkey.pem;
    location / { proxy_pass http://127.0.0.1:4180; }
}
server { listen 80; }
`;

/** Starts nginx with one file of `conf.d`. */
export async function startNginx(options: ProxyOptions, site: string): Promise<TlsProxy> {
  const { folder, authority, port, plainPort, servicePort, secondPort } = options;
  mkdirSync(folder, { recursive: true });
  const second = (line: string) => (secondPort === undefined ? '' : line.replace('4180', String(secondPort)));
  const withSecond = site.replace(/ +server 127.*\n/, (line) => line + second(line));
  const adapted = adapt(withSecond.replaceAll('runyard.example.com', 'localhost'), {
    '/etc/ssl/runyard': authority.folder,
    'listen 80': `listen 127.0.0.1:${plainPort}`,
    'listen 443': `listen 127.0.0.1:${port}`,
    '127.0.0.1:4180': `127.0.0.1:${servicePort}`,
  });
  writeFileSync(path.join(folder, 'site.conf'), adapted);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (of) => `${of}_temp_path ${folder}/${of};`,
  );
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const main = `${user} pid ${folder}/pid; daemon off; events {} http { access_log off; ${temporary.join(' ')} include ${folder}/site.conf; }`;
  writeFileSync(path.join(folder, 'nginx.conf'), main);
  const args = ['-p', folder, '-c', path.join(folder, 'nginx.conf'), '-e', path.join(folder, 'error.log')];
  return await startProxy(nginxFile ?? 'nginx', args, options, {});
}

async function startCaddy(options: ProxyOptions): Promise<TlsProxy> {
  const { folder, authority, port, plainPort, servicePort, secondPort } = options;
  mkdirSync(folder, { recursive: true });
  const site = adapt(readFileSync(path.join(root, 'deploy/caddy/Caddyfile'), 'utf8'), {
    '\nrunyard.example.com {': `\nhttps://localhost:${port} {\n\tbind 127.0.0.1`,
    '/etc/ssl/runyard': authority.folder,
    '127.0.0.1:4180': [servicePort, ...(secondPort === undefined ? [] : [secondPort])]
      .map((each) => `127.0.0.1:${each}`)
      .join(' '),
  });
  const global = `{\n\tadmin off\n\thttp_port ${plainPort}\n\tauto_https disable_redirects\n}\n`;
  writeFileSync(path.join(folder, 'Caddyfile'), global + site);
  const args = ['run', '--adapter', 'caddyfile', '--config', path.join(folder, 'Caddyfile')];
  return await startProxy(caddyFile ?? 'caddy', args, options, {
    HOME: folder,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
  });
}

/** Starts the program. Resolves when it answers with TLS. */
async function startProxy(
  program: string,
  args: readonly string[],
  { folder, port, authority }: ProxyOptions,
  env: Record<string, string>,
): Promise<TlsProxy> {
  const log = openSync(path.join(folder, 'output.log'), 'a');
  const child: ChildProcess = spawn(program, args, {
    stdio: ['ignore', log, log],
    env: { PATH: '/usr/bin:/bin', ...env },
  });
  closeSync(log);
  const origin = `https://localhost:${port}`;
  await eventually(`start of ${path.basename(program)}`, async () => {
    if (child.exitCode !== null)
      throw new Error(`${program} ended: ${readFileSync(path.join(folder, 'output.log'), 'utf8')}`);
    return (await ask(authority, `${origin}/healthz`).catch(() => null)) !== null;
  });
  return {
    origin,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      // Do not use SIGKILL, because the processes that nginx has started would continue.
      child.kill('SIGTERM');
      await gone;
    },
  };
}

/** Sends a request that trusts only the test's certificate authority. Resolves to the answer, without reading its body. */
export function open(authority: Authority, url: string, options: RequestOptions & { body?: Buffer | string } = {}) {
  const { body, ...more } = options;
  return new Promise<IncomingMessage>((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const sent = request(url, {
      ...more,
      headers: { ...more.headers, ...length },
      ca: readFileSync(authority.file),
      agent: false,
    });
    sent.on('response', resolve).on('error', reject);
    sent.end(body);
  });
}

/** Sends the same request and reads the body of the answer. */
export async function ask(authority: Authority, url: string, options: Parameters<typeof open>[2] = {}) {
  const response = await open(authority, url, options);
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { status: response.statusCode, text: Buffer.concat(parts).toString('utf8') };
}
