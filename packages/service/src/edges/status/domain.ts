import { statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import { routes } from '@runyard/contract/routes';
import type { ServiceReport } from '@runyard/contract/team/installation';
import { productVersion } from '@runyard/system/product-version';
import type { Domain } from '../../platform/domain.ts';
import { refuse } from '../../platform/serving/refusal.ts';
import { storeServiceReport } from '../../runs/executions/lease/heartbeat.ts';
import { mayReadInstallation } from '../../team/access/keys/operator.ts';
import { serve } from '../../team/access/serve.ts';
import { type InstallationDeps, readInstallation } from './read.ts';

const everyMs = 5_000;
/** A report whose problem is the same is stored again after this time, because the free space changes all the time. */
const sameForMs = 60_000;

/** Stores what each service process says about itself, and shows services, workers, database and backups of the whole installation. */
export function statusDomain(deps: InstallationDeps, domains: readonly Domain[]): Domain {
  let stored: { readonly at: number; readonly problem: string | undefined } | undefined;
  const report = async (): Promise<void> => {
    const problem = findProblem(domains);
    const now = performance.now();
    if (stored !== undefined && stored.problem === problem && now - stored.at < sameForMs) return;
    const disk = await readDisk(deps.settings.RUNYARD_DATA_DIR);
    const text: ServiceReport = {
      host: hostname(),
      version: productVersion(),
      ...(problem === undefined ? {} : { problem }),
      ...(disk === undefined ? {} : { disk }),
    };
    await storeServiceReport(deps.db, deps.serviceInstanceId, text);
    stored = { at: now, problem };
  };
  return {
    name: 'status',
    routes: () => [
      serve(routes.getInstallation, async ({ principal }) =>
        (await mayReadInstallation(deps.db, principal))
          ? await readInstallation(deps)
          : refuse('not_authorized', { detail: "Only owners of the team of the operator's key may read this." }),
      ),
    ],
    loops: async () => [{ name: 'the report of the service', everyMs, work: report }],
  };
}

/** A process that serves no requests cannot store a report either, so only the parts that do not work are looked for. */
function findProblem(domains: readonly Domain[]): string | undefined {
  const problems = domains.flatMap(({ readiness }) => readiness?.degraded?.() ?? []);
  return problems.length === 0 ? undefined : problems.join('; ');
}

async function readDisk(folder: string): Promise<ServiceReport['disk']> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    return { free_bytes: bavail * bsize, total_bytes: blocks * bsize };
  } catch {
    return undefined;
  }
}
