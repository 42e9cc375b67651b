import type { Context } from '../context/context.ts';
import type { ProgramName } from '../machine/installed-units.ts';
import { checkBlobs, checkDatabase, checkLastBackup } from './database.ts';
import type { Finding } from './finding.ts';
import { checkHarnesses } from './harnesses.ts';
import { checkDataFolder, checkDisk, checkGit, checkListening, checkNode, findForeignService } from './machine.ts';
import { checkModels } from './models.ts';
import { checkContentPolicy, checkModelCatalogue, checkSignOn } from './operator-files.ts';
import { checkProxy } from './proxy.ts';
import { checkSandbox } from './sandbox.ts';
import { checkService } from './service.ts';
import { checkWaitingSandboxes } from './waiting-sandboxes.ts';
import { checkWorkers } from './workers.ts';

/**
 * Checks the machine, the programs and the settings. Returns the findings in the order of the report. `only`: checks what this program needs;
 * undefined: checks what both programs need.
 */
export async function runChecks(context: Context, only: ProgramName | undefined): Promise<Finding[]> {
  const foreign = only === 'worker' ? null : await findForeignService(context);
  const [ofService, ofWorker] = await Promise.all([
    only === 'worker' ? undefined : checksOfService(context, foreign),
    only === 'service' ? [] : checksOfWorker(context),
  ]);
  return [
    checkNode(),
    ...(await checkProxy(context)),
    ...(ofService?.findings ?? (await checkService(context))),
    checkDataFolder(context),
    checkDisk(context, only !== 'service' && ofService?.takeRuns !== true),
    ...(ofService?.takeRuns === true ? ofWorker.map(asFact) : ofWorker),
  ];
}

/** Machines without a worker need no sandboxes if workers on other machines take the runs. */
const asFact = (finding: Finding): Finding => (finding.level === 'bad' ? { ...finding, level: 'fact' } : finding);

async function checksOfService(
  context: Context,
  foreign: string | null,
): Promise<{ readonly findings: Finding[]; readonly takeRuns: boolean }> {
  const [listening, workers, ...rest] = await Promise.all([
    checkListening(context, foreign),
    foreign === null ? checkWorkers(context) : { findings: [], takeRuns: false },
    checkDatabaseAndBackup(context, foreign),
    checkBlobs(context),
    checkModels(context),
    checkModelCatalogue(context, new Date()),
    checkContentPolicy(context),
    checkSignOn(context),
  ]);
  return { findings: [listening, ...workers.findings, ...rest.flat()], takeRuns: workers.takeRuns };
}

/** Looks for the last backup only in a database that answers. */
async function checkDatabaseAndBackup(context: Context, foreign: string | null): Promise<Finding[]> {
  const database = await checkDatabase(context, foreign);
  if (foreign !== null || database.some(({ level }) => level === 'bad')) return database;
  return [...database, ...(await checkLastBackup(context, new Date()))];
}

async function checksOfWorker(context: Context): Promise<Finding[]> {
  const [sandbox, harnesses] = await Promise.all([checkSandbox(context), checkHarnesses(context)]);
  return [...sandbox, ...checkWaitingSandboxes(context), ...harnesses, checkGit(context)];
}
