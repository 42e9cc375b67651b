import { rotateKey } from '@runyard/service/rotate-key';
import { processContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';

/**
 * Replaces the key in the data folder with which secrets are encrypted. A running service then encrypts the stored secrets again with the
 * new key.
 */
export async function rotateSecretsKey(context = processContext()): Promise<void> {
  if (context.settings.RUNYARD_SECRETS_KEY !== undefined)
    throw new Failure(
      'the key is in RUNYARD_SECRETS_KEY: set it to NEW,OLD (two keys with a comma), restart the services one after the other, and remove OLD a day later',
    );
  const outcome = await rotateKey(context.folder.path);
  switch (outcome.kind) {
    case 'rotated':
      context.out(
        `${outcome.file}: key ${outcome.keyId} seals from now on; ${outcome.previousKeyId} still opens.\nA running service seals its stored values again within seconds, and removes the earlier key a day later. Copy the file to your backup.\n`,
      );
      return;
    case 'no_file':
      throw new Failure(`there is no ${outcome.file}: no secret was stored in this data folder yet`);
    case 'busy':
      throw new Failure(`another process changes ${outcome.file}; try again`);
  }
}
