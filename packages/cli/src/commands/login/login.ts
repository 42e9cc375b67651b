/** The commands `login` and `logout`. `login` creates a key for the person who is signed in to the service in a browser. */
import { constants, generateKeyPair, type KeyObject, privateDecrypt, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { promisify } from 'node:util';
import { createClient } from '@runyard/client';
import {
  type CommandLineQuery,
  commandLineFingerprint,
  commandLinePath,
  commandLineSeal,
} from '@runyard/contract/team/command-line';
import { isLoopback } from '@runyard/system/address-rules';
import { answerInTurn } from '@runyard/system/answer-in-turn';
import type { Command } from 'commander';
import { type Context, processContext, requireOrigin } from '../../context/context.ts';
import { keepLogin, type Login, loginAt } from '../../data-folder/logins.ts';
import { Failure } from '../../exits/failure.ts';
import { openPrivately, whyNoBrowser } from '../../machine/start-browser.ts';
import { harmlessLine } from '../../terminal/harmless.ts';

/** Longest time that the command waits for the person. */
const patienceMs = 10 * 60_000;

/**
 * Stores a new key of the person who is signed in to the service in the browser. The page sends the key to this command. With `code`,
 * or if this machine has no browser, the person instead copies the encrypted key from the page and pastes it here.
 */
async function login(context: Context, options: { readonly code?: true }): Promise<void> {
  const origin = requireOrigin(context);
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: commandLineSeal.bits });
  const exported = publicKey.export({ format: 'der', type: 'spki' });
  const query = {
    key: exported.toString('base64url'),
    name: hostname().slice(0, 100) || 'this machine',
  };
  const problem = options.code ? '' : whyNoBrowser(context.env);
  context.report(
    `allow the sign-in only if the page shows this fingerprint: ${await commandLineFingerprint(new Uint8Array(exported))}`,
  );
  const sealed =
    problem === null ? await receive(context, origin, query) : await askForCode(context, urlOf(origin, query), problem);
  const login = openSealed(privateKey, sealed);
  const session = await clientWith(origin, login).getSession();
  const earlier = loginAt(context.folder, origin);
  keepLogin(context.folder, origin, login);
  if (earlier !== undefined) await endKey(origin, earlier);
  context.out(`signed in at ${origin} as ${harmlessLine(session.user.display_name ?? session.user.uid)}\n`);
  const { RUNYARD_API_KEY: own, RUNYARD_BOOTSTRAP_KEY: ofService } = context.settings;
  if (own || ofService)
    context.report(`${own ? 'RUNYARD_API_KEY' : 'RUNYARD_BOOTSTRAP_KEY'} is set, and commands use it instead`);
}

const urlOf = (origin: string, query: CommandLineQuery): string =>
  `${origin}${commandLinePath}?${new URLSearchParams({ ...query })}`;

const clientWith = (origin: string, { key }: Login) =>
  createClient({ baseUrl: origin, apiKey: key, userAgent: 'runyard-cli', strict: true });

/** Opens the page in a browser on this machine, and waits for the request with which the page sends the key. */
async function receive(context: Context, origin: string, query: CommandLineQuery): Promise<string> {
  const state = randomBytes(32).toString('base64url');
  const { promise, resolve } = Promise.withResolvers<string>();
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '', 'http://127.0.0.1');
    const sealed = url?.searchParams.get('sealed');
    const isOurs = request.method === 'GET' && isSame(url?.searchParams.get('state') ?? '', state) && sealed;
    response.writeHead(isOurs ? 200 : 404, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'",
      'cache-control': 'no-store',
      connection: 'close',
    });
    response.end(isOurs ? '<!doctype html><title>Runyard</title><p>You can close this page.</p>' : 'Not found');
    if (isOurs) response.once('finish', () => resolve(sealed));
  });
  answerInTurn(server);
  await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const url = urlOf(origin, { ...query, port: String(port), state });
  const timer = AbortSignal.timeout(patienceMs);
  const late = new Promise<never>((_resolve, reject) => {
    timer.addEventListener('abort', () => reject(new Failure('nobody has allowed the sign-in. Start again.')));
  });
  try {
    context.report('the browser asks whether this command line may act as you ...');
    const problem = await openPrivately(url);
    context.report(
      `${problem === null ? 'if it does not, ' : `no browser was started: ${problem}; `}open this address in a browser of this machine. To use a browser of another machine, stop this and run bin/runyard login --code:`,
    );
    context.out(`${url}\n`);
    return await Promise.race([promise, late]);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

function isSame(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}

/** Prints the address of the page, and reads the code that the page shows. */
async function askForCode(context: Context, url: string, problem: string): Promise<string> {
  context.out(`${url}\n`);
  if (problem !== '') context.report(`no browser was started: ${problem}`);
  const page = new URL(url);
  const { hostname: host, port: given, protocol } = page;
  const port = given || (protocol === 'https:' ? 443 : 80);
  if (isLoopback(page))
    context.report(
      `only this machine reaches the address: for a browser of another machine, run there first: ssh -L ${port}:${host}:${port} ${hostname()}`,
    );
  context.report('without a browser, use an API key instead: set RUNYARD_API_KEY');
  context.report('open this address in a browser, allow the sign-in, and paste the code that the page shows');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const ended = new Promise<never>((_resolve, reject) => {
      terminal.once('close', () =>
        reject(new Failure('no code was given. Run this in a terminal, or set RUNYARD_API_KEY.')),
      );
    });
    const code = terminal.question('Code: ', { signal: AbortSignal.timeout(patienceMs) });
    return (await Promise.race([code, ended])).trim();
  } finally {
    terminal.close();
  }
}

/** Decrypts the sealed key. @throws Failure if the key was sealed for another command */
function openSealed(privateKey: KeyObject, sealed: string): Login {
  try {
    const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
    const text = privateDecrypt({ key: privateKey, ...padding }, Buffer.from(sealed, 'base64url')).toString();
    const [uid = '', key = ''] = text.split(' ');
    return { uid, key };
  } catch {
    throw new Failure('the code is not for this command, or is not complete. Start again: bin/runyard login');
  }
}

/** Deletes the key at the service. Returns null if the key was deleted, and otherwise the reason of the failure. */
async function endKey(origin: string, login: Login): Promise<string | null> {
  return await clientWith(origin, login)
    .deleteKey({ params: { uid: login.uid } })
    .then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
}

/** Deletes the key from `login`, in the data folder and at the service. */
async function logout(context: Context): Promise<void> {
  const origin = requireOrigin(context);
  const login = loginAt(context.folder, origin);
  if (login === undefined) throw new Failure(`not signed in at ${origin} with bin/runyard login`);
  keepLogin(context.folder, origin, null);
  const problem = await endKey(origin, login);
  context.out(`signed out at ${origin}\n`);
  if (problem !== null) context.report(`the service did not delete the key ${login.uid}: ${problem}`);
}

/** Declares the command `login`. */
export function declareLogin(command: Command): void {
  command
    .option('--code', 'print the address for a browser of another machine, and read the code that it shows')
    .action((options) => login(processContext(), options));
}

/** Declares the command `logout`. */
export function declareLogout(command: Command): void {
  command.action(() => logout(processContext()));
}
