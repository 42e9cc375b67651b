/** Reads the Jobs and pods of a worker from the cluster, at most once a second for all sandboxes together. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { V1Job, V1Pod } from '@kubernetes/client-node';
import { backoffMs } from '@runyard/system/backoff';
import type { Cluster } from './cluster.ts';
import { ownedBy } from './names.ts';

/** The objects of a sandbox, as one read returned them. */
export interface Found {
  readonly job: V1Job | undefined;
  /** Pods that the Job has made. There is more than one pod only if somebody has changed the Job or a pod. */
  readonly pods: readonly V1Pod[];
}

export interface Look {
  /**
   * Reads the Job with this id repeatedly, and calls `see` after each read. Resolves when `see` returns true. A `see` that throws is called
   * again after the next read.
   */
  untilSeen(jobUid: string, see: (found: Found) => boolean): Promise<void>;
  close(): void;
}

const pauseMs = 1000;
const longestPauseMs = 15_000;

interface Watcher {
  readonly uid: string;
  readonly see: (found: Found) => boolean;
  readonly done: () => void;
  hasFailed: boolean;
}

/**
 * Makes the object that reads the Jobs and pods for all sandboxes. The object reads only while a caller waits. `pause`: milliseconds
 * between two reads.
 */
export function openLook(
  cluster: Pick<Cluster, 'listJobs' | 'listPods'>,
  owner: string,
  log: { warn(fields: object, message: string): void },
  pause = pauseMs,
): Look {
  const watchers = new Set<Watcher>();
  const retry = { firstMs: 2 * pause, longestMs: longestPauseMs };
  let looks = false;
  let closed = false;

  const show = (watcher: Watcher, found: Found): void => {
    try {
      if (!watcher.see(found)) return;
    } catch (error) {
      // Continues to read, because the functions of other watchers may succeed. Logs the error only once for this watcher, because its
      // function probably throws again after the next read.
      if (!watcher.hasFailed) log.warn({ job: watcher.uid, err: error }, 'the state of a Job cannot be understood');
      watcher.hasFailed = true;
      return;
    }
    watchers.delete(watcher);
    watcher.done();
  };

  const loop = async (): Promise<void> => {
    let failures = 0;
    while (watchers.size > 0 && !closed) {
      // Only the watchers that exist now get the result of this read. For a watcher that is added during the read, the result may be too
      // old.
      const present = [...watchers];
      try {
        // Reads the Jobs before the pods. In this order, if a Job is in the first answer and its pod is not in the second, the pod does
        // not exist yet or no longer exists.
        const jobs = await cluster.listJobs(ownedBy(owner));
        const pods = await cluster.listPods(ownedBy(owner));
        failures = 0;
        for (const watcher of present) {
          show(watcher, {
            job: jobs.find(({ metadata }) => metadata?.uid === watcher.uid),
            pods: pods.filter(({ metadata }) => isMadeBy(metadata?.ownerReferences, watcher.uid)),
          });
        }
      } catch (error) {
        failures += 1;
        if (failures === 1)
          log.warn({ error: (error as Error).message }, 'the cluster cannot be looked at; trying again');
      }
      if (watchers.size > 0)
        await sleep(failures === 0 ? pause : backoffMs(retry, failures), undefined, { ref: false });
    }
    looks = false;
  };

  return {
    untilSeen(uid, see) {
      return new Promise((done) => {
        watchers.add({ uid, see, done, hasFailed: false });
        if (looks) return;
        looks = true;
        void loop();
      });
    },
    close() {
      closed = true;
    },
  };
}

/**
 * Returns whether the Job with this id controls an object with these owners. Labels would not prove this, because everybody who creates a
 * pod chooses its labels.
 */
export const isMadeBy = (owners: NonNullable<V1Pod['metadata']>['ownerReferences'], uid: string): boolean =>
  owners?.some((owner) => owner.controller === true && owner.kind === 'Job' && owner.uid === uid) === true;
