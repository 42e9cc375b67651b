import { replaceOperatorKey } from '@runyard/service/replace-operator-key';
import { type Context, dataPlace } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { requireDatabase } from '../installation/backup.ts';

/**
 * Replaces the operator's key in the data folder by a new key, and prints the new key. The old key stops working. The service may run
 * during this.
 */
export async function replaceKeyOfOperator(context: Context): Promise<void> {
  if (context.settings.RUNYARD_BOOTSTRAP_KEY !== undefined)
    throw new Failure("RUNYARD_BOOTSTRAP_KEY is the operator's key: change this setting, and start the service again");
  requireDatabase(context);
  const key = await replaceOperatorKey(dataPlace(context)).catch((error: Error) => {
    throw new Failure(error.message);
  });
  context.out(`${key}\n`);
  context.report(
    `it is the operator's key now, in ${context.folder.bootstrapKeyFile}; the old one has stopped working`,
  );
}
