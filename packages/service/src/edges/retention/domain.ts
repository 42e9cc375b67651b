import type { Domain } from '../../platform/domain.ts';
import { collectRetention, type SweepDeps, sweepWhenDue } from './sweep.ts';

/** The nightly sweep of the rows and blobs that `domains` registered. */
export function retentionDomain(deps: Omit<SweepDeps, 'registered' | 'signal'>, domains: readonly Domain[]): Domain {
  return {
    name: 'retention',
    loops: async () => {
      const { db, blobs, log, settings } = deps;
      const registered = collectRetention(domains);
      return [
        {
          name: 'the nightly retention',
          everyMs: 60_000,
          work: (signal) => sweepWhenDue({ db, blobs, log, settings, registered, signal }),
        },
      ];
    },
  };
}
