import type { Context } from '../context.ts';
import { checkBlobs, checkDatabase, checkLastBackup } from './database.ts';
import type { Finding } from './finding.ts';
import { checkHarnesses } from './harnesses.ts';
import { checkDataFolder, checkGit, checkListening, checkNode } from './machine.ts';
import { checkModels } from './models.ts';
import { checkContentPolicy, checkModelCatalogue, checkSignOn } from './operator-files.ts';
import { checkSandbox } from './sandbox.ts';
import { checkWaitingSandboxes } from './waiting-sandboxes.ts';

/** Checks the machine, the service and the settings. Returns the findings in the order of the report. */
export async function runChecks(context: Context): Promise<Finding[]> {
  const [listening, database, blobs, backup, sandbox, models, harnesses, catalogue, policy] = await Promise.all([
    checkListening(context),
    checkDatabase(context),
    checkBlobs(context),
    checkLastBackup(context, new Date()),
    checkSandbox(context),
    checkModels(context),
    checkHarnesses(context),
    checkModelCatalogue(context, new Date()),
    checkContentPolicy(context),
    checkSignOn(context),
  ]);
  return [
    checkNode(),
    database,
    ...blobs,
    ...backup,
    checkDataFolder(context),
    listening,
    ...sandbox,
    ...checkWaitingSandboxes(context),
    ...harnesses,
    ...models,
    ...catalogue,
    ...policy,
    checkGit(context),
  ];
}
