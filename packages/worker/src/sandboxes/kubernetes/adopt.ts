/** Finds the sandboxes that earlier workers of a data folder left in the cluster. */
import type { AdoptableSandbox } from '../backend-kind.ts';
import { follow, type KubernetesGround } from './backend.ts';
import { isMadeBy } from './look.ts';
import { ownedBy, sandboxOfJob } from './names.ts';
import { readRecord } from './record.ts';

/**
 * Returns the sandboxes of the data folder's Jobs. These are running sandboxes, and ended sandboxes whose end the service may not
 * know. A Job is adopted only if its name, its labels and the proof of its record are valid. All other objects with the labels of the
 * data folder are deleted.
 */
export async function adoptJobs(ground: KubernetesGround): Promise<AdoptableSandbox[]> {
  const { cluster, owner, secret, log } = ground;
  const left: AdoptableSandbox[] = [];
  const jobs = await cluster.listJobs(ownedBy(owner));
  const pods = jobs.length === 0 ? [] : await cluster.listPods(ownedBy(owner));
  for (const job of jobs) {
    const { name = '', uid = '', deletionTimestamp } = job.metadata ?? {};
    const id = sandboxOfJob(owner, name);
    const record = readRecord(secret, job);
    if (id === undefined || record === undefined) {
      if (record === undefined && job.spec?.suspend !== true)
        log.warn({ job: name }, 'a Job has no proof that a worker of this data folder released it; it is not adopted');
      await cluster.deleteJob(name, uid);
      continue;
    }
    // Skips a Job that is being deleted, because no agent works in its pod any more.
    if (deletionTimestamp !== undefined) continue;
    const image = job.spec?.template.spec?.containers[0]?.image ?? '';
    const pod = pods.find(({ metadata }) => isMadeBy(metadata?.ownerReferences, uid));
    const startedAt = pod?.status?.containerStatuses?.find((each) => each.name === 'agent')?.state?.running?.startedAt;
    const { started, ended, kill } = follow(ground, { name, uid, image });
    void started.then((failure) => (failure === undefined ? cluster.deleteSecret(name).catch(() => {}) : undefined));
    left.push({
      record: {
        ...record,
        spawn_ms: startedAt === undefined ? 0 : Math.max(0, startedAt.getTime() - record.assigned_at),
      },
      // False if the pod has not started yet. Then the agent itself reports the start later.
      lives: startedAt !== undefined,
      sandbox: {
        id,
        ended,
        kill,
        onDenied: () => {},
        dispose: async () => void (await ended),
      },
    });
  }
  return left;
}
