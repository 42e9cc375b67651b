import { readFileSync } from 'node:fs';
import type { Settings } from '@runyard/contract/settings';
import { Failure } from './failure.ts';
import { type DataFolder, dataFolder } from './installation.ts';
import { type Colours, coloursFor } from './live/colours.ts';
import { readSettings } from './read-settings.ts';
import { readClaim } from './supervise/claim.ts';
import { readServiceFile } from './supervise/service-file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings, folders and output of a command. */
export interface Context {
  readonly env: Environment;
  readonly settings: Settings;
  readonly folder: DataFolder;
  readonly colours: Colours;
  /** Writes to standard output. */
  readonly out: (text: string) => void;
  /** Writes a line to standard error. */
  readonly report: (message: string) => void;
}

/** Creates the context of a command. @throws Failure if a setting is wrong */
export function createContext(env: Environment): Context {
  const settings = readSettings(env);
  return {
    env,
    settings,
    folder: dataFolder(settings, env),
    colours: coloursFor(process.stdout, env),
    out: (text) => void process.stdout.write(text),
    report: (message) => void process.stderr.write(`runyard: ${message}\n`),
  };
}

/** Returns the origin of the service, without `/api/v1`; `null` if no service of this data folder runs and no other one is named. */
export function serviceOrigin(context: Context): string | null {
  return (
    readClaim(context.folder.supervisorFile)?.origin ??
    readServiceFile(context.folder.serviceFile)?.base_url ??
    context.settings.RUNYARD_BASE_URL ??
    null
  );
}

/** Returns the API key; `null` if there is none yet. */
export function apiKey(context: Context): string | null {
  const given = context.settings.RUNYARD_API_KEY ?? context.settings.RUNYARD_BOOTSTRAP_KEY;
  if (given) return given;
  try {
    return readFileSync(context.folder.bootstrapKeyFile, 'utf8').trim() || null;
  } catch {
    return null;
  }
}

/** Returns the API key. @throws Failure that says how to set one */
export function requireApiKey(context: Context): string {
  const key = apiKey(context);
  if (!key) throw new Failure(`no API key: set RUNYARD_API_KEY (there is none in ${context.folder.bootstrapKeyFile})`);
  return key;
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
