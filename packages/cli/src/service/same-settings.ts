import type { SettingName } from '@runyard/contract/settings/settings';
import { stateOf } from '@runyard/system/process-identity';
import type { Context } from '../context/context.ts';
import { readClaim } from '../data-folder/claim.ts';
import { readServiceFile } from '../data-folder/service-file.ts';
import { Failure } from '../exits/failure.ts';
import { type Difference, differencesTo, readEnvironmentOf } from '../supervise/running-settings.ts';
import { harmlessLine } from '../terminal/harmless.ts';

/**
 * Returns the settings of this command that differ from the settings of the programs that run on its data folder. Returns an empty
 * list if no programs run there. Returns `undefined` if this user cannot see the settings of the programs, for example because they
 * run in another container.
 */
export function settingDifferences(context: Context, names?: readonly SettingName[]): Difference[] | undefined {
  const claim = readClaim(context.folder.supervisorFile);
  const holder = claim ?? readServiceFile(context.folder.serviceFile);
  if (!holder) return [];
  // Reads the environment only if the process is in this container, because the same process id may belong to another process here.
  const running = stateOf(holder) === 'alive' ? readEnvironmentOf(holder.pid) : undefined;
  if (running === undefined) return undefined;
  const origin = claim?.origin ?? readServiceFile(context.folder.serviceFile)?.base_url;
  // If the setting is port 0, the service has chosen a port itself. Takes this port from the origin of the service.
  const port = Number(running.RUNYARD_PORT) === 0 && origin !== undefined ? new URL(origin).port : undefined;
  return differencesTo(
    { ...running, ...(port ? { RUNYARD_PORT: port } : {}) },
    context.env,
    claim?.programs ?? ['service', 'worker'],
    names,
  );
}

/**
 * Checks that this command has the same settings as the programs that run on its data folder. With `names`, checks only these
 * settings. If RUNYARD_BASE_URL is set, checks nothing, because the command does not use these programs.
 * @throws Failure that names each difference and says how to restart
 */
export function requireSameSettings(context: Context, names?: readonly SettingName[]): void {
  if (context.settings.RUNYARD_BASE_URL !== undefined) return;
  const differences = settingDifferences(context, names);
  if (differences === undefined || differences.length === 0) return;
  const lines = differences.map(
    ({ name, here, running }) => `  ${name}: here ${harmlessLine(here)}; running with ${harmlessLine(running)}`,
  );
  const unset = differences.map(({ name }) => ` -u ${name}`).join('');
  throw new Failure(
    `Runyard runs on ${context.folder.path} with other settings than this command has:\n${lines.join('\n')}\nSettings count from the start of the programs. To restart with yours: bin/runyard down && bin/runyard up\nTo use Runyard with its present settings: unset them, for example with env${unset} bin/runyard …`,
  );
}
