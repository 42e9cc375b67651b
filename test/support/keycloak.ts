/** A real Keycloak, from the Maven repository that the settings of the machine name, on loopback. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { promisify, stripVTControlCharacters } from 'node:util';
import { freePort } from './free-port.ts';
import { type KeptPackages, keepPackages } from './kept-packages.ts';
import { eventually, killHard } from './system.ts';

const run = promisify(execFile);

export const keycloakVersion = '26.4.7';
const sha256 = 'dd9834c023460be856f731423d86228c23b5d002194a2064642bec0cc6573eaa';
const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1';
/** Time limit of a download or a start on a loaded machine. */
const limitMs = 580_000;
const admin = { username: 'admin', password: 'admin' };

export interface Keycloak {
  /** Address for browsers and clients, which the issuers begin with. */
  readonly url: string;
  /** Calls the administration API, at a path below `/admin/realms`. Returns the JSON of the answer; throws if the answer is an error. */
  manage<T>(method: string, place: string, body?: unknown): Promise<T>;
  /** Signs in on Keycloak's pages as a browser that opens `url`. Returns the address to which Keycloak sends the browser back. */
  signIn(url: string, username: string, password: string): Promise<URL>;
  /** Handles the requests whose path matches, but closes their connections instead of answering. Null: answers all requests. */
  losesAnswers: RegExp | null;
  stop(): Promise<void>;
}

export type KeycloakStart =
  | { readonly kind: 'ready'; readonly keycloak: Keycloak }
  | { readonly kind: 'missing'; readonly reason: string };

/** Installs and starts Keycloak. Returns `missing` if it cannot be installed on this machine. */
export async function startKeycloak(): Promise<KeycloakStart> {
  for (const [program, flag] of [
    ['java', '-version'],
    ['mvn', '-version'],
  ] as const) {
    const found = await run(program, [flag]).catch(() => undefined);
    if (!found) return { kind: 'missing', reason: `${program} is not installed` };
  }
  let kept: KeptPackages;
  try {
    kept = await keepPackages(['keycloak', sha256], install);
  } catch (error) {
    const output = stripVTControlCharacters(String((error as { stdout?: string }).stdout || error));
    const [reason = output] = output.split('\n').filter((line) => line.includes('ERROR'));
    return { kind: 'missing', reason: `Maven cannot get it: ${reason.slice(0, 300)}` };
  }
  return { kind: 'ready', keycloak: await start(kept) };
}

const homeIn = (folder: string): string => path.join(folder, `keycloak-${keycloakVersion}`);

/** Gets the distribution with Maven, checks its hash, and prepares it for fast starts with a database in files. */
async function install(folder: string): Promise<void> {
  const repository = path.join(folder, 'repository');
  const artifact = `org.keycloak:keycloak-quarkus-dist:${keycloakVersion}:zip`;
  const words = [`${plugin}:unpack`, `-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`];
  await run('mvn', ['-B', '-q', `-Dmaven.repo.local=${repository}`, ...words], {
    timeout: limitMs,
    // Without a project, the plugin writes a marker file into the folder in which Maven works.
    cwd: folder,
  });
  const hash = createHash('sha256');
  const parts = ['org/keycloak/keycloak-quarkus-dist', keycloakVersion, `keycloak-quarkus-dist-${keycloakVersion}.zip`];
  await pipeline(createReadStream(path.join(repository, ...parts)), hash);
  if (hash.digest('hex') !== sha256) throw new Error('ERROR: the distribution of Keycloak has another hash');
  await rm(repository, { recursive: true });
  await run('sh', [path.join(homeIn(folder), 'bin/kc.sh'), 'build', '--db=dev-file'], { timeout: limitMs });
}

async function start(kept: KeptPackages): Promise<Keycloak> {
  // The installation stays unchanged, because other test runs use it. Keycloak writes only into the folder `data` of its home.
  const home = await mkdtemp(path.join(tmpdir(), 'runyard-keycloak-'));
  for (const name of await readdir(homeIn(kept.folder)))
    if (name !== 'data') await symlink(path.join(homeIn(kept.folder), name), path.join(home, name));
  const port = await freePort();
  const answers = { lost: null as RegExp | null };
  const { url, close } = await startLossyProxy(port, answers);
  const child = spawnKeycloak(home, port, url);
  const issuer = `${url}/realms/master`;
  const stop = async () => {
    await killHard(child);
    await close();
    await rm(home, { recursive: true, force: true });
    await kept.remove();
  };
  try {
    const isUp = async () => {
      if (child.exitCode !== null) throw new Error(`Keycloak exited with ${child.exitCode}`);
      return (await fetch(issuer).catch(() => undefined))?.ok;
    };
    await eventually('start of Keycloak', isUp, limitMs);
  } catch (error) {
    await stop();
    throw error;
  }

  const manage = async <T>(method: string, place: string, body?: unknown): Promise<T> => {
    // A token for administration lasts one minute.
    const form = new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', ...admin });
    const token = await fetch(`${issuer}/protocol/openid-connect/token`, { method: 'POST', body: form });
    const { access_token: bearer } = (await token.json()) as { access_token: string };
    const answer = await fetch(`${url}/admin/realms${place}`, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${place} answered ${answer.status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  return {
    url,
    manage,
    signIn: (address, username, password) => signInAt(url, address, { username, password }),
    get losesAnswers() {
      return answers.lost;
    },
    set losesAnswers(lost) {
      answers.lost = lost;
    },
    stop,
  };
}

/** Starts the Java program as `kc.sh` does. `kc.sh` itself would stay between the program and its signals. */
function spawnKeycloak(home: string, port: number, url: string): ChildProcess {
  const quarkus = 'io.quarkus.bootstrap';
  const words = [
    `-Djava.util.concurrent.ForkJoinPool.common.threadFactory=${quarkus}.forkjoin.QuarkusForkJoinWorkerThreadFactory`,
    ...['-Xmx512m', '-XX:+ExitOnOutOfMemoryError', '-Djava.util.logging.manager=org.jboss.logmanager.LogManager'],
    ...['--add-opens=java.base/java.util=ALL-UNNAMED', '--add-opens=java.base/java.util.concurrent=ALL-UNNAMED'],
    ...['--add-opens=java.base/java.security=ALL-UNNAMED', '-Duser.language=en', `-Dkc.home.dir=${home}`],
    ...[`-Djboss.server.config.dir=${home}/conf`, '-cp', `${home}/lib/quarkus-run.jar`],
    ...[`${quarkus}.runner.QuarkusEntryPoint`, 'start', '--optimized', '--cache=local', '--http-enabled=true'],
    ...['--http-host=127.0.0.1', `--http-port=${port}`, `--hostname=${url}`, '--log-level=error'],
  ];
  const bootstrap = {
    KC_BOOTSTRAP_ADMIN_USERNAME: admin.username,
    KC_BOOTSTRAP_ADMIN_PASSWORD: admin.password,
  };
  return spawn('java', words, {
    cwd: home,
    env: { PATH: process.env.PATH ?? '', HOME: home, ...bootstrap },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** Starts a proxy in front of Keycloak that can lose its answers. */
async function startLossyProxy(port: number, answers: { readonly lost: RegExp | null }) {
  const server = createServer(async (request, response) => {
    const { method, headers, url = '' } = request;
    const isLost = answers.lost?.test(url) === true;
    const sent = send({ host: '127.0.0.1', port, method, path: url, headers }, async (answer) => {
      const body = await buffer(answer);
      if (isLost) return void response.destroy();
      const { 'transfer-encoding': _, ...others } = answer.headers;
      response.writeHead(answer.statusCode ?? 502, others).end(body);
    });
    sent.on('error', () => response.destroy());
    sent.end(await buffer(request));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Opens the address as a new browser, and sends the form of Keycloak's sign-in page. */
async function signInAt(origin: string, url: string, form: Record<string, string>): Promise<URL> {
  const cookies = new Map<string, string>();
  const open = async (address: string, body?: URLSearchParams) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(address, {
      redirect: 'manual',
      headers: { cookie },
      ...(body ? { method: 'POST', body } : {}),
    });
    for (const each of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
      cookies.set(name, value);
    }
    return { location: answer.headers.get('location'), page: await answer.text() };
  };
  let opened = await open(url);
  if (opened.location === null) {
    const [, action] = /<form[^>]* action="([^"]+)"/.exec(opened.page) ?? [];
    if (action === undefined) throw new Error(`Keycloak shows no form: ${opened.page}`);
    opened = await open(action.replaceAll('&amp;', '&'), new URLSearchParams(form));
  }
  const { location } = opened;
  if (location === null || location.startsWith(origin)) throw new Error(`Keycloak refuses the form: ${opened.page}`);
  return new URL(location);
}
