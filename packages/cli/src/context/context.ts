import { readFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Settings } from '@runyard/contract/settings/settings';
import type { DataPlace } from '@runyard/service/transfer';
import { isLoopback } from '@runyard/system/address-rules';
import { useProxy } from '@runyard/system/outgoing/outgoing';
import { trustCaFile } from '@runyard/system/trust-authorities';
import { readClaim } from '../data-folder/claim.ts';
import { type DataFolder, dataFolder } from '../data-folder/installation.ts';
import { loginAt } from '../data-folder/logins.ts';
import { urlOfService } from '../data-folder/service-file.ts';
import { Failure } from '../exits/failure.ts';
import { type Colours, coloursFor } from '../terminal/colours.ts';
import { createCleaner, forTerminal } from '../terminal/harmless.ts';
import { readSettings } from './read-settings.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings, folders and output of a command. */
export interface Context {
  readonly env: Environment;
  readonly settings: Settings;
  readonly folder: DataFolder;
  readonly colours: Colours;
  /** Writes to standard output. Removes control characters, because the text may contain words of other people. */
  readonly out: (text: string) => void;
  /** Writes bytes from the service to standard output: unchanged to a file or a pipe, and like `out` to a terminal. */
  readonly outBytes: (bytes: AsyncIterable<Uint8Array>) => Promise<void>;
  /** Writes a line to standard error. */
  readonly report: (message: string) => void;
}

/** Creates the context of a command. @throws Failure if a setting is wrong */
export function createContext(env: Environment): Context {
  const settings = readSettings(env);
  try {
    trustCaFile(settings.RUNYARD_CA_FILE);
    useProxy(env);
  } catch (error) {
    throw new Failure((error as Error).message, 2);
  }
  return {
    env,
    settings,
    folder: dataFolder(settings, env),
    colours: coloursFor(process.stdout, env),
    out: (text) => void process.stdout.write(forTerminal(text)),
    outBytes: (bytes) => pipeline(process.stdout.isTTY ? cleaned(bytes) : bytes, process.stdout, { end: false }),
    report: (message) => void process.stderr.write(`runyard: ${forTerminal(message)}\n`),
  };
}

async function* cleaned(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const cleaner = createCleaner();
  for await (const piece of bytes) yield cleaner.clean(decoder.decode(piece, { stream: true }));
}

/** Creates the context of this process. @throws Failure if a setting is wrong */
export const processContext = (): Context => createContext(process.env);

/** Returns where the database and the blobs are. */
export function dataPlace({ folder, settings }: Context): DataPlace {
  const url = settings.RUNYARD_DATABASE_URL;
  return { dataFolder: folder.path, blobs: settings, ...(url === undefined ? {} : { databaseUrl: url }) };
}

/**
 * Returns the origin of the service that commands use, without `/api/v1`. This is RUNYARD_BASE_URL or, if it is not set, the service
 * of this data folder. Returns `null` if no service is known.
 */
export function serviceOrigin(context: Context): string | null {
  return context.settings.RUNYARD_BASE_URL ?? originOfFolder(context.folder);
}

/** Returns the origin of the service that runs on this data folder, or `null` if no service runs. */
export function originOfFolder(folder: DataFolder): string | null {
  return readClaim(folder.supervisorFile)?.origin ?? urlOfService(folder.serviceFile);
}

/**
 * Returns the API key for the service that commands use: from the settings, from `runyard login` or from the data folder. Returns
 * `null` if there is no key yet.
 */
export function apiKey(context: Context): string | null {
  const origin = serviceOrigin(context);
  const login = origin === null ? undefined : loginAt(context.folder, origin);
  return keyOfSettings(context) ?? login?.key ?? keyOfFolder(context);
}

/**
 * Returns the API key for programs that run without a person: from the settings or from the data folder. Returns `null` if there is no
 * key yet.
 */
export const programKey = (context: Context): string | null => keyOfSettings(context) ?? keyOfFolder(context);

const keyOfSettings = ({ settings }: Context): string | null =>
  settings.RUNYARD_API_KEY || settings.RUNYARD_BOOTSTRAP_KEY || null;

const keyOfFolder = (context: Context): string | null => (isOfFolder(context) ? folderKey(context.folder) : null);

/** Returns the first API key of the service of this data folder, or `null` if there is none yet. */
export function folderKey(folder: DataFolder): string | null {
  try {
    return readFileSync(folder.bootstrapKeyFile, 'utf8').trim() || null;
  } catch {
    return null;
  }
}

/**
 * Returns whether the service that commands use is the service of the data folder. Only this service may get the key of the data folder,
 * because the key belongs to an administrator.
 */
function isOfFolder({ settings, folder }: Context): boolean {
  const named = settings.RUNYARD_BASE_URL;
  if (named === undefined) return true;
  const knownOrigins = [readClaim(folder.supervisorFile)?.origin, urlOfService(folder.serviceFile)];
  return knownOrigins.some((origin) => origin && isSameOrigin(origin, named));
}

function isSameOrigin(one: string, other: string): boolean {
  const [first, second] = [new URL(one), new URL(other)];
  if (first.protocol !== second.protocol || first.port !== second.port) return false;
  return first.hostname === second.hostname || (isLoopback(first) && isLoopback(second));
}

/** Returns the API key. @throws Failure that says how to set a key if there is none */
export function requireApiKey(context: Context, key = apiKey(context)): string {
  if (key) return key;
  const { RUNYARD_BASE_URL: named } = context.settings;
  throw new Failure(
    named !== undefined && folderKey(context.folder) !== null
      ? `no API key for ${named}: run bin/runyard login, or set RUNYARD_API_KEY. The key of ${context.folder.path} is sent only to the service of that folder.`
      : named === undefined && serviceOrigin(context) === null
        ? `Runyard does not run here. Start it with bin/runyard up, or set RUNYARD_BASE_URL and RUNYARD_API_KEY to use a service elsewhere. (Data folder: ${context.folder.path})`
        : `no API key: set RUNYARD_API_KEY (no key in ${context.folder.bootstrapKeyFile})`,
  );
}

/** Returns the origin of the service. @throws Failure if no service is known */
export function requireOrigin(context: Context): string {
  const origin = serviceOrigin(context);
  if (origin === null)
    throw new Failure(
      'Runyard does not run here. Start it with bin/runyard up, or set RUNYARD_BASE_URL to a service elsewhere.',
    );
  return origin;
}
