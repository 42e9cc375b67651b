/** The HTTP API of a container engine on this machine (docs.docker.com/reference/api/engine), over its Unix socket. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { http } from '@runyard/system/node-http';

/**
 * Newest version of the API that this code was written for. An engine that supports only older versions gets requests in the newest version
 * that it supports.
 */
const newestVersion = '1.47';
/** Oldest version of the API that has everything that this code uses. Docker engines support this version since release 20.10. */
const oldestVersion = '1.41';
/** Maximum number of bytes of an answer that is read as JSON. */
const longestAnswer = 16 * 1024 * 1024;
/** Time limit for an answer, in milliseconds. */
const answerMs = 60_000;

/** The address of an engine. The worker also sends it as JSON to the supervisor process of a sandbox. */
export interface EngineAddress {
  readonly socketPath: string;
  /** Version of the API, such as `1.41`. */
  readonly version: string;
}

export interface EngineRequest {
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: object;
  /** Content of a tar archive. */
  readonly tar?: Uint8Array;
  /** Credentials for a registry: the value of the header `X-Registry-Auth`. */
  readonly registryAuth?: string | undefined;
  readonly signal?: AbortSignal;
  /** Time limit until the answer begins, in milliseconds; 0: no limit. Default: one minute. */
  readonly answerMs?: number;
}

/** A failure that the engine reports. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The connection to an engine. No connection is kept open between two requests. */
export interface Engine {
  readonly address: EngineAddress;
  /**
   * Sends a request and reads the answer. Rejects with an `EngineError` if the status is 400 or above, and with another error if the engine
   * cannot be reached.
   */
  call<T = unknown>(method: string, path: string, request?: EngineRequest): Promise<T>;
  /** Sends a request and returns the answer as a stream. Rejects with the same errors as `call`. */
  stream(method: string, path: string, request?: EngineRequest): Promise<IncomingMessage>;
  /**
   * Connects to standard input, standard output and standard error of a container. `head`: bytes of the outputs that arrived together
   * with the answer.
   */
  attach(container: string): Promise<{ readonly socket: Socket; readonly head: Buffer }>;
}

/** Opens the connection to an engine. */
export function openEngine(address: EngineAddress): Engine {
  const { socketPath, version } = address;
  const send = (method: string, path: string, request: EngineRequest = {}): ClientRequest => {
    const { query, json, tar, registryAuth, signal } = request;
    const body = json === undefined ? tar : Buffer.from(JSON.stringify(json));
    const sent = http.request({
      socketPath,
      method,
      path: `${version === '' ? '' : `/v${version}`}${path}${query === undefined ? '' : `?${new URLSearchParams(query)}`}`,
      agent: false,
      headers: {
        host: 'docker',
        ...(registryAuth === undefined ? {} : { 'x-registry-auth': registryAuth }),
        ...(body === undefined
          ? {}
          : { 'content-type': tar ? 'application/x-tar' : 'application/json', 'content-length': body.length }),
      },
      ...(signal === undefined ? {} : { signal }),
    });
    sent.end(body);
    return sent;
  };
  const answerTo = (sent: ClientRequest, limitMs = answerMs): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const late = limitMs === 0 ? undefined : setTimeout(() => sent.destroy(new Error('it does not answer')), limitMs);
      sent.once('response', (answer) => {
        clearTimeout(late);
        resolve(answer);
      });
      // This event also occurs when an answer breaks off later. Then the promise is already settled, so `reject` has no effect.
      sent.on('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(late);
        reject(error);
      });
    });
  const stream: Engine['stream'] = async (method, path, request) => {
    const answer = await answerTo(send(method, path, request), request?.answerMs);
    const status = answer.statusCode ?? 500;
    if (status < 400) return answer;
    throw new EngineError(status, messageOf(await textOf(answer)) || `status ${status}`);
  };
  return {
    address,
    stream,
    async call<T>(method: string, path: string, request?: EngineRequest) {
      const text = await textOf(await stream(method, path, request));
      return (text === '' ? undefined : parse(text)) as T;
    },
    attach: (container) =>
      new Promise((resolve, reject) => {
        const sent = http.request({
          socketPath,
          method: 'POST',
          path: `/v${version}/containers/${container}/attach?stream=1&stdin=1&stdout=1&stderr=1`,
          agent: false,
          headers: { host: 'docker', connection: 'Upgrade', upgrade: 'tcp', 'content-length': 0 },
        });
        const late = setTimeout(() => sent.destroy(new Error('it does not answer')), answerMs);
        sent.once('close', () => clearTimeout(late));
        sent.once('upgrade', (_, socket, head) => {
          clearTimeout(late);
          resolve({ socket: socket as Socket, head });
        });
        sent.once('response', (answer) => {
          textOf(answer).then((text) => reject(new EngineError(answer.statusCode ?? 500, messageOf(text))), reject);
        });
        sent.on('error', reject);
        sent.end();
      }),
  };
}

/** Returns the whole text of an answer. Rejects if the answer is too long or breaks off. */
async function textOf(answer: Readable): Promise<string> {
  let text = '';
  answer.setEncoding('utf8');
  for await (const chunk of answer) {
    text += chunk;
    if (text.length > longestAnswer) throw new Error('its answer is too long');
  }
  return text;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const messageOf = (text: string): string => {
  const parsed = parse(text) as { message?: unknown } | undefined;
  return typeof parsed?.message === 'string' ? parsed.message.trim() : text.trim().slice(0, 500);
};

/** Facts of an engine that decide whether its containers can be sandboxes. */
export interface EngineFacts {
  readonly name: string;
  readonly architecture: string;
  readonly securityOptions: readonly string[];
  readonly runtimes: readonly string[];
  readonly defaultRuntime: string;
  readonly hasMemoryLimit: boolean;
  readonly hasProcessLimit: boolean;
  readonly hasSwapLimit: boolean;
  readonly hasProcessorLimit: boolean;
  /** `1` or `2`; empty if the engine does not report it. */
  readonly cgroupVersion: string;
  /** Folder in which the engine stores its images. */
  readonly rootFolder: string;
}

/**
 * Returns the path of the socket that `RUNYARD_DOCKER_HOST` names. Throws if the engine is on another machine, because that engine cannot
 * mount files of this machine.
 */
export function socketOf(host: string): string {
  if (/^unix:\/\/\/./.test(host)) return host.slice('unix://'.length);
  throw new Error(
    `RUNYARD_DOCKER_HOST=${host} is not a Unix socket of this machine (unix:///var/run/docker.sock): containers use folders of the worker, so the engine must be on its machine`,
  );
}

/** Finds the engine behind a socket. Rejects with the reason and the next step. */
export async function findEngine(socketPath: string): Promise<{ engine: Engine; facts: EngineFacts }> {
  const version = await openEngine({ socketPath, version: '' })
    .call<{ ApiVersion?: string; Version?: string }>('GET', '/version')
    .catch((error: NodeJS.ErrnoException) => {
      throw new Error(unreachable(socketPath, error), { cause: error });
    });
  const known = version?.ApiVersion ?? '0';
  if (isOlder(known, oldestVersion))
    throw new Error(`the container engine ${version?.Version ?? ''} is too old: version 20.10 or newer is needed`);
  const engine = openEngine({ socketPath, version: isOlder(known, newestVersion) ? known : newestVersion });
  const info = await engine.call<Record<string, unknown>>('GET', '/info');
  const text = (name: string) => (typeof info[name] === 'string' ? info[name] : '');
  return {
    engine,
    facts: {
      name: `engine ${version?.Version ?? ''}`.trim(),
      architecture: text('Architecture'),
      securityOptions: Array.isArray(info.SecurityOptions) ? info.SecurityOptions.map(String) : [],
      runtimes: Object.keys((info.Runtimes as object | undefined) ?? {}),
      defaultRuntime: text('DefaultRuntime'),
      hasMemoryLimit: info.MemoryLimit === true,
      hasProcessLimit: info.PidsLimit === true,
      hasSwapLimit: info.SwapLimit === true,
      hasProcessorLimit: info.CpuCfsQuota === true,
      cgroupVersion: text('CgroupVersion'),
      rootFolder: text('DockerRootDir'),
    },
  };
}

function unreachable(socketPath: string, error: NodeJS.ErrnoException): string {
  if (error.code === 'EACCES')
    return `this user may not use the container engine at ${socketPath}: add the user to the group of the socket (usually \`docker\`), or run the worker as root`;
  return `no container engine answers at ${socketPath} (${error.code ?? error.message}): install and start one (Debian, Ubuntu: package \`docker.io\`), or set RUNYARD_DOCKER_HOST`;
}

/** Compares versions such as `1.41`. */
function isOlder(one: string, other: string): boolean {
  const [a = 0, b = 0] = one.split('.').map(Number);
  const [c = 0, d = 0] = other.split('.').map(Number);
  return a === c ? b < d : a < c;
}
