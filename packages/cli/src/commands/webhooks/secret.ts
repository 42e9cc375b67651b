/** The secrets of webhooks. */
import type { WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { Failure } from '../../exits/failure.ts';
import { readInput } from '../../input/input-file.ts';

/** Reads a secret from a file, because other users of the machine could read an argument. */
export function secretFrom(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  const secret = readInput(file).toString('utf8').trim();
  if (secret === '') throw new Failure(`${file}: the file contains no secret`);
  return secret;
}

/** Returns the lines that show a webhook with its secret: UID, URL and secret. */
export function linesWithSecret({ uid, url, secret, secret_of_team, auth_mode }: WebhookWithSecret): string[] {
  const isShown = secret !== undefined && !secret_of_team && auth_mode !== 'url_token';
  return isShown ? [uid, url, secret] : [uid, url];
}

/** Returns what the person must know if the answer has no secret. */
export function notesOnSecret({ uid, secret_of_team, secret_name, secret }: WebhookWithSecret): string[] {
  if (secret_of_team) return [`it uses the secret ${secret_name} of the team`];
  if (secret !== undefined) return [];
  return [`it is disabled until its secret is stored: bin/runyard webhooks rotate ${uid} --secret-file FILE`];
}
