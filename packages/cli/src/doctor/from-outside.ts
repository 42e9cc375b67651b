/**
 * Checks a service and the proxy in front of it from outside. It only sends requests, so it needs no access to the machines of the
 * service and the proxy.
 */
import type { OutgoingHttpHeaders } from 'node:http';
import { apiPrefix } from '@runyard/contract/wire/route';
import { isLoopback } from '@runyard/system/address-rules';
import { untrustedCertificate } from '@runyard/system/untrusted-certificate';
import { readReadiness } from '../supervise/answers.ts';
import { harmlessLine } from '../terminal/harmless.ts';
import type { Finding } from './finding.ts';
import { type Answer, answerMs, ask, type Probe } from './probe.ts';

/** Time limit for the first bytes of a stream. The service sends the first bytes at once, and the next bytes only after 15 s. */
const streamMs = 5_000;
/** The service accepts a body of this size, but most proxies refuse it with their default settings. */
const probeBytes = 20 * 1024 * 1024;
const page = 'docs/proxy.md';

const isProblem = ({ type }: Answer): boolean => type.startsWith('application/problem+json');

/**
 * Checks the service at `origin` and returns the findings. Without `key`, skips the checks that need a key.
 */
export async function checkFromOutside(origin: string, key: string | undefined): Promise<Finding[]> {
  // A proxy may pass only this request on to a service that is not ready.
  const readiness = await checkReady(origin);
  if (readiness.some(({ level }) => level === 'bad')) return readiness;
  const reached = await checkReachable(origin);
  if (reached.finding.level === 'bad') return [reached.finding];
  const [webSocket, body, withKey] = await Promise.all([
    checkWebSocket(origin),
    checkBody(origin, key),
    key === undefined ? withoutKey : checkWithKey(origin, key),
  ]);
  return [reached.finding, ...readiness, ...checkScheme(origin, reached.answer), webSocket, body, ...withKey];
}

const withoutKey: readonly Finding[] = [
  {
    name: 'streams, client address',
    level: 'fact',
    detail: 'not checked: these checks need an API key',
    fix: 'set RUNYARD_API_KEY',
  },
];

async function checkReachable(origin: string): Promise<{ readonly finding: Finding; readonly answer?: Answer }> {
  const name = 'service';
  const bad = (detail: string, fix: string) => ({ finding: { name, level: 'bad' as const, detail, fix } });
  let answer: Answer;
  try {
    answer = await ask(origin, { path: '/healthz' });
  } catch (error) {
    const untrusted = untrustedCertificate(error);
    if (untrusted) return bad(`${origin} does not answer: its certificate is not trusted`, untrusted);
    const reason = error instanceof Error ? error.message || String((error as NodeJS.ErrnoException).code) : error;
    return bad(
      `${origin} does not answer: ${reason}`,
      'check the address, the name server, the firewall, and that the proxy runs',
    );
  }
  if (answer.status === 200 && answer.text === '{"status":"ok"}')
    return { finding: { name, level: 'good', detail: `${origin} answers` }, answer };
  const { status, location } = answer;
  if (location !== undefined) return bad(`${origin} sends clients to ${location}`, 'use the address of that page');
  return status === 502 || status === 503 || status === 504
    ? bad(
        `the proxy at ${origin} does not reach the service (HTTP ${status})`,
        'check that the service runs, and that the proxy has the right address of it',
      )
    : bad(
        `${origin} answers with HTTP ${status}, and not as Runyard does`,
        `let the proxy pass all paths to the service (${page})`,
      );
}

/** A service that is not ready refuses all other requests, so the proxy cannot be judged by them. */
async function checkReady(origin: string): Promise<Finding[]> {
  const name = 'readiness';
  const { answered, ready, problem } = await readReadiness(origin, answerMs);
  if (!answered)
    return [
      {
        name,
        level: 'note',
        detail: 'unknown: /readyz has no answer of the service',
        fix: `let the proxy pass all paths to the service (${page})`,
      },
    ];
  if (!ready)
    return [
      { name, level: 'bad', detail: `the service is not ready: ${harmlessLine(problem ?? 'it gives no reason')}` },
      { name: 'proxy', level: 'fact', detail: 'not checked: a service that is not ready refuses all requests' },
    ];
  return problem === null ? [] : [{ name, level: 'note', detail: harmlessLine(problem) }];
}

function checkScheme(origin: string, answer: Answer | undefined): Finding[] {
  const url = new URL(origin);
  if (url.protocol === 'http:') {
    return isLoopback(url)
      ? [{ name: 'TLS', level: 'fact', detail: 'no TLS, which is safe only on this machine' }]
      : [
          {
            name: 'TLS',
            level: 'bad',
            detail: 'no TLS: other people on the network can read keys, and browsers cannot sign in',
            fix: `put a proxy with TLS in front of the service (${page})`,
          },
        ];
  }
  const days = Math.floor((Date.parse(answer?.validTo ?? '') - Date.now()) / 86_400_000);
  return [
    days < 14
      ? { name: 'TLS', level: 'note', detail: `the certificate ends in ${days} days`, fix: 'renew it' }
      : { name: 'TLS', level: 'good', detail: `the certificate is trusted, and valid for ${days} days more` },
  ];
}

async function checkWebSocket(origin: string): Promise<Finding> {
  const name = 'WebSocket';
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': Buffer.alloc(16).toString('base64'),
  };
  const fix = `nginx: proxy_http_version 1.1, proxy_set_header Upgrade $http_upgrade, proxy_set_header Connection "upgrade" (${page})`;
  try {
    // Sends no key. If the service gets the Upgrade header, it answers with 401. If a proxy has removed the header, the service reports
    // the missing header.
    const answer = await ask(origin, { path: `${apiPrefix}/selfhosted/worker/ws?worker_id=doctor`, headers });
    if (answer.status === 401 && isProblem(answer)) return { name, level: 'good', detail: 'workers can connect' };
    return {
      name,
      level: 'bad',
      detail: `workers cannot connect: the proxy does not pass WebSockets on (HTTP ${answer.status})`,
      fix,
    };
  } catch (error) {
    return { name, level: 'bad', detail: `workers cannot connect: ${(error as Error).message}`, fix };
  }
}

/**
 * Sends a large body that is not JSON. With a key, the service reads the whole body and then refuses it. Without a key, the service
 * may refuse the request before it has read the whole body.
 */
async function checkBody(origin: string, key: string | undefined): Promise<Finding> {
  const name = 'body size';
  const size = `${probeBytes / 1024 / 1024} MB`;
  const fix = `let the service limit bodies: nginx: client_max_body_size 0 (${page})`;
  const bad = (why: unknown): Finding => ({
    name,
    level: 'bad',
    detail: `a body of ${size} does not pass (${why})`,
    fix,
  });
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
  try {
    const answer = await ask(origin, {
      method: 'POST',
      path: `${apiPrefix}/agent/runs`,
      headers: { 'content-type': 'application/json', ...authorization },
      body: Buffer.alloc(probeBytes, ' '),
      timeoutMs: 6 * answerMs,
    });
    return isProblem(answer) && answer.status !== 413
      ? { name, level: 'good', detail: `a body of ${size} passes` }
      : bad(`HTTP ${answer.status}`);
  } catch (error) {
    if (key !== undefined) return bad((error as Error).message);
    const detail =
      'unknown: the connection was closed before the answer arrived, which may be the refusal of a request without a key';
    return { name, level: 'fact', detail, fix: 'set RUNYARD_API_KEY' };
  }
}

interface Session {
  readonly base_url: string;
  readonly client: {
    readonly address: string;
    readonly scheme: string;
    readonly host?: string;
    readonly undeclared_proxy?: string;
  };
}

async function checkWithKey(origin: string, key: string): Promise<Finding[]> {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await ask(origin, { path: `${apiPrefix}/session`, headers }).catch((error: Error) => error);
  if (answer instanceof Error || answer.status !== 200) {
    const reason = answer instanceof Error ? answer.message : `HTTP ${answer.status}`;
    const fix = 'set RUNYARD_API_KEY to a personal key';
    return [
      {
        name: 'API key',
        level: 'bad',
        detail: `the service does not take the key of RUNYARD_API_KEY (${reason})`,
        fix,
      },
    ];
  }
  const session = JSON.parse(answer.text) as Session;
  return [
    checkAddress(origin, session, answer.localAddress),
    checkBaseUrl(origin, session),
    await checkStream(origin, headers),
  ];
}

function checkAddress(origin: string, { client }: Session, localAddress: string | undefined): Finding {
  const name = 'client address';
  if (client.undeclared_proxy !== undefined)
    return {
      name,
      level: 'note',
      detail: `the service takes all clients for the proxy ${client.undeclared_proxy}, in audit, log and limits`,
      fix: `set RUNYARD_TRUSTED_PROXIES=${client.undeclared_proxy} for the service (${page})`,
    };
  if (origin.startsWith('https:') && client.scheme === 'http')
    return {
      name,
      level: 'note',
      detail: `the proxy ${client.address} does not report which client sent the request`,
      fix: `let it send X-Forwarded-For and X-Forwarded-Proto, and name it in RUNYARD_TRUSTED_PROXIES of the service (${page})`,
    };
  const local = localAddress?.replace(/^::ffff:/, '');
  return client.address === local
    ? { name, level: 'good', detail: `the service sees this machine as ${client.address}` }
    : {
        name,
        level: 'fact',
        detail: `the service sees this machine as ${client.address}; it sent from ${local}, so a device between them translates addresses`,
      };
}

function checkBaseUrl(origin: string, session: Session): Finding {
  const name = 'base URL';
  const fix = `set RUNYARD_BASE_URL=${origin} for the service`;
  if (new URL(session.base_url).origin !== new URL(origin).origin)
    return {
      name,
      level: 'note',
      detail: `the service believes that its address is ${session.base_url}: its links lead there`,
      fix,
    };
  const { host } = session.client;
  return host === undefined || host === new URL(origin).host
    ? { name, level: 'good', detail: 'links of the service lead here' }
    : {
        name,
        level: 'note',
        detail: `the host arrives as ${host}`,
        fix: `let the proxy pass the header Host (${page})`,
      };
}

async function checkStream(origin: string, headers: OutgoingHttpHeaders): Promise<Finding> {
  const name = 'streams';
  const fix = `let the proxy forward answers at once: nginx: proxy_buffering off (${page})`;
  try {
    const probe: Probe = { path: `${apiPrefix}/agent/runs/events`, headers, isStream: true, timeoutMs: streamMs };
    const { status, text } = await ask(origin, probe);
    if (status !== 200) return { name, level: 'bad', detail: `no stream of events (HTTP ${status})`, fix };
    if (text !== '') return { name, level: 'good', detail: 'events arrive at once' };
    return { name, level: 'bad', detail: 'the proxy holds events back', fix };
  } catch (error) {
    return { name, level: 'bad', detail: `the proxy holds events back: ${(error as Error).message}`, fix };
  }
}
