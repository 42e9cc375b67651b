import { maxSnapshotFileBytes } from '@runyard/contract/limits';

/** All patches of a snapshot: they lie on the disk of the sandbox until they are sent. */
export const maxPatchesBytes = 4 * maxSnapshotFileBytes;
