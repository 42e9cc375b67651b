/** Names and labels of the objects of a worker in a cluster. */
import { createHash } from 'node:crypto';

export const managedByLabel = 'app.kubernetes.io/managed-by';
/** Label with the id of the data folder whose worker has made the object. */
export const ownerLabel = 'runyard.dev/owner';
export const executionLabel = 'runyard.dev/execution';
const runLabel = 'runyard.dev/run';
/** Prefixes of the labels and annotations that only Runyard and the cluster may set. */
export const reservedPrefixes = ['runyard.dev/', 'batch.kubernetes.io/', 'job-name', 'controller-uid', managedByLabel];

/** Annotation with the record of the execution. */
export const recordAnnotation = 'runyard.dev/record';
/** Annotation with the proof that the worker has written the record for exactly this Job. */
export const proofAnnotation = 'runyard.dev/proof';

/** Returns the name of the Job, and of the Secret, of a sandbox. */
export const jobName = (owner: string, id: string): string => `runyard-${owner}-${id}`;

/** Returns the id of the sandbox of a Job; undefined if the Job does not belong to this worker. */
export function sandboxOfJob(owner: string, name: string | undefined): string | undefined {
  const prefix = jobName(owner, '');
  const id = name?.startsWith(prefix) ? name.slice(prefix.length) : '';
  return /^[0-9a-f]{12}$/.test(id) ? id : undefined;
}

/** Returns the name of the worker's network policy. */
export const policyName = (owner: string): string => `runyard-${owner}`;

/** Returns the text if it is a valid value of a label, which has at most 63 characters. Otherwise returns a digest of the text. */
export const labelValue = (text: string): string =>
  /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/.test(text)
    ? text
    : createHash('sha256').update(text).digest('hex').slice(0, 32);

/** Returns the selector that finds all objects that workers of a data folder have made. */
export const ownedBy = (owner: string): string => `${managedByLabel}=runyard,${ownerLabel}=${owner}`;

/** Returns the labels of the objects of an execution. */
export const labelsOf = (
  owner: string,
  { executionId, taskId }: { readonly executionId: string; readonly taskId: string },
): Readonly<Record<string, string>> => ({
  [managedByLabel]: 'runyard',
  [ownerLabel]: owner,
  [executionLabel]: labelValue(executionId),
  [runLabel]: labelValue(taskId),
});
