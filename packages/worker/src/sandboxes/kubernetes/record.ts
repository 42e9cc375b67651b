/** The record of an execution, which is an annotation of its Job. The next worker learns from the record which execution the Job runs. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { V1Job } from '@kubernetes/client-node';
import { z } from 'zod';
import type { SandboxSpecification } from '../sandbox.ts';
import { ownerLabel, proofAnnotation, recordAnnotation } from './names.ts';

const secretBytes = 32;

const PodRecord = z.object({
  execution: z.object({ task_id: z.string(), execution_id: z.string() }),
  assignment_id: z.string().optional(),
  limits: z.object({ memoryMb: z.number(), processes: z.number(), tmpMb: z.number(), diskMb: z.number() }),
  /** True if the environment of the run may lower the worker's limits. */
  limited: z.boolean(),
  /** Time of the assignment in Unix milliseconds, by the clock of the worker. */
  assigned_at: z.number(),
});
export type PodRecord = z.infer<typeof PodRecord>;

/** Returns the record of a specification. */
export const recordOf = (specification: SandboxSpecification, assignedAt: number): PodRecord => ({
  execution: { task_id: specification.taskId, execution_id: specification.executionId },
  ...(specification.assignmentId === undefined ? {} : { assignment_id: specification.assignmentId }),
  limits: specification.limits,
  limited: specification.isLimited,
  assigned_at: assignedAt,
});

/**
 * Returns the secret of a data folder, which no pod can see. Creates the secret if there is none yet. The caller holds the lock of the data
 * folder. The secret is written into another file, which is then renamed. So a worker that dies during the write never leaves an incomplete
 * secret. An incomplete secret would be easy to guess, and others could then forge proofs and labels.
 */
export function openSecret(stateRoot: string): string {
  const file = path.join(stateRoot, 'kubernetes-secret');
  if (!existsSync(file)) {
    writeFileSync(`${file}.new`, randomBytes(secretBytes).toString('hex'), { mode: 0o600, flush: true });
    renameSync(`${file}.new`, file);
  }
  const secret = readFileSync(file, 'utf8');
  if (secret.length !== 2 * secretBytes)
    throw new Error(
      `${file} is damaged: delete this file, and the Jobs with the label ${ownerLabel} that belong to no other worker`,
    );
  return secret;
}

/**
 * Returns twelve hex digits that label all objects of a data folder in a cluster. The digits are derived from the secret of the folder.
 * They cannot be derived from the path of the folder: data folders on several machines may have the same path, and a worker deletes all
 * objects that have the label of its folder but no valid proof.
 */
export const ownerOf = (secret: string): string =>
  createHash('sha256').update(`owner of ${secret}`).digest('hex').slice(0, 12);

/** Returns the proof that a worker with this secret wrote the record for the Job with this id. The cluster gives each Job a unique id. */
export const proofOf = (secret: string, uid: string, record: string): string =>
  createHmac('sha256', secret).update(`${uid}\n${record}`).digest('hex');

/** Returns the record of a Job. Returns undefined if no worker of this data folder has released the Job. */
export function readRecord(secret: string, job: V1Job): PodRecord | undefined {
  const { uid = '', annotations = {} } = job.metadata ?? {};
  const text = annotations[recordAnnotation] ?? '';
  const given = Buffer.from(annotations[proofAnnotation] ?? '');
  const right = Buffer.from(proofOf(secret, uid, text));
  if (uid === '' || given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
  try {
    return PodRecord.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
