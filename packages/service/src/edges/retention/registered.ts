import type { BlobColumn, DeleteRunDetail, Domain, NightlyTask, RowRule } from '../../platform/domain.ts';

/** The work that all domains registered for the nightly sweep, in the order of the domains. */
export interface RegisteredRetention {
  readonly blobs: readonly BlobColumn[];
  readonly rows: readonly RowRule[];
  readonly runDetail: readonly DeleteRunDetail[];
  readonly nightly: readonly NightlyTask[];
}

/** Collects the work that the domains registered. */
export const collectRetention = (domains: readonly Domain[]): RegisteredRetention => ({
  blobs: domains.flatMap(({ blobs = [] }) => blobs),
  rows: domains.flatMap(({ retention }) => retention?.rows ?? []),
  runDetail: domains.flatMap(({ retention }) => retention?.deleteRunDetail ?? []),
  nightly: domains.flatMap(({ retention }) => retention?.nightly ?? []),
});
