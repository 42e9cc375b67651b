/** As the contract's, repeated because its module would load the schemas. */
export const maxSnapshotFiles = 100;
export const maxSnapshotFileBytes = 25 * 1024 * 1024;
/** All patches of a snapshot: they lie on the disk of the sandbox until they are sent. */
export const maxPatchesBytes = 4 * maxSnapshotFileBytes;
