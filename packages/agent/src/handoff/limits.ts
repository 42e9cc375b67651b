/** As the contract's, repeated because its module would load the schemas. */
export const maxSnapshotFiles = 100;
export const maxSnapshotFileBytes = 25 * 1024 * 1024;
