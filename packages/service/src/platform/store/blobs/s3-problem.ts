/** Says what is wrong with a bucket, by the requests of a check that fail. */
import type { BlobsProblem } from './blobs.ts';
import { reasonOf, statusOf } from './s3-errors.ts';

/** The requests of a check. Each throws if the bucket refuses it. */
export interface ProbeRequests {
  list(): Promise<unknown>;
  write(): Promise<unknown>;
  read(): Promise<unknown>;
  /** Reads an object that was not written. */
  readMissing(): Promise<unknown>;
  /** Opens the object with a presigned URL. Absent: clients get no presigned URLs. */
  open?(): Promise<unknown>;
  delete(): Promise<unknown>;
}

export type ProbeStep = keyof ProbeRequests;

const read = {
  does: 'read an object',
  remedy: 'the credentials need the right s3:GetObject, and the rights for the key of RUNYARD_BLOBS_ENCRYPTION',
  isNeeded: true,
};

/** The words and the rights of the steps. Without a needed step, the service cannot work at all. */
const steps: Readonly<Record<ProbeStep, { does: string; remedy: string; isNeeded: boolean }>> = {
  list: { does: 'list objects', remedy: 'the credentials need the right s3:ListBucket', isNeeded: true },
  write: {
    does: 'write an object',
    remedy: 'the credentials need the right s3:PutObject, and the rights for the key of RUNYARD_BLOBS_ENCRYPTION',
    isNeeded: true,
  },
  read,
  readMissing: read,
  open: {
    does: 'open an object with a presigned URL',
    remedy: 'correct the bucket, or set RUNYARD_BLOBS_DOWNLOADS=service',
    isNeeded: false,
  },
  delete: { does: 'delete an object', remedy: 'the credentials need the right s3:DeleteObject', isNeeded: false },
};

/**
 * Does these steps, and returns a sentence about all steps that fail. A fault that concerns every request, such as a missing bucket or
 * wrong credentials, is reported alone. `where`: the bucket, as the subject of the sentence.
 */
export async function probeBucket(
  where: string,
  requests: ProbeRequests,
  names: readonly ProbeStep[],
): Promise<BlobsProblem | null> {
  const faults: BlobsProblem[] = [];
  let isWritten = true;
  for (const name of names) {
    // Without an object, these steps would only repeat the fault of the write.
    if (!isWritten && (name === 'read' || name === 'open')) continue;
    const { does, remedy, isNeeded } = steps[name];
    try {
      await requests[name]?.();
    } catch (error) {
      const ofAll = faultOfAll(error, where);
      if (ofAll) return ofAll;
      faults.push({ text: `does not ${does} (${reasonOf(error)}): ${remedy}`, isLasting: isNeeded });
      if (name === 'write') isWritten = false;
    }
  }
  if (faults.length === 0) return null;
  const text = `${where} ${faults.map((fault) => fault.text).join('; it ')}`;
  return { text, isLasting: faults.some(({ isLasting }) => isLasting) };
}

const wrongCredentials = ['InvalidAccessKeyId', 'SignatureDoesNotMatch', 'ExpiredToken', 'InvalidToken'];
const wrongRegion = ['AuthorizationHeaderMalformed', 'PermanentRedirect', 'IllegalLocationConstraintException'];

/** Returns the problem if an error concerns every request to the bucket; undefined if it concerns only this request. */
function faultOfAll(error: unknown, where: string): BlobsProblem | undefined {
  const lasting = (text: string) => ({ text, isLasting: true });
  const { name, message, code } = error as NodeJS.ErrnoException;
  const status = statusOf(error);
  if (status === 0) {
    if (code === 'ERR_INVALID_CHAR')
      return lasting(
        `the credentials for ${where} have a character that no HTTP header can have, such as a line break; correct AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN or the files of the AWS SDK`,
      );
    if (message === 'Region is missing') return lasting(`${where} needs a region; set AWS_REGION`);
    if (error instanceof ProbeMismatch) return undefined;
    return { text: `${where} cannot be reached: ${reasonOf(error)}`, isLasting: false };
  }
  if (status === 404 && name !== 'NoSuchKey')
    return lasting(`${where} does not exist; create it, or correct the setting`);
  if (status === 301 || wrongRegion.includes(name))
    return lasting(`${where} expects another region (${reasonOf(error)}); set AWS_REGION`);
  if (name === 'RequestTimeTooSkewed')
    return { text: `${where} has another time than this machine; set the clock of this machine`, isLasting: false };
  if (status === 401 || wrongCredentials.includes(name))
    return lasting(
      `${where} refuses the credentials (${name}); correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the files of the AWS SDK`,
    );
  if (status === 429 || (status >= 500 && status !== 501))
    return { text: `${where} cannot be used now: ${reasonOf(error)}`, isLasting: false };
  return undefined;
}

/** Thrown if the bucket returns another object than the one that was written. */
export class ProbeMismatch extends Error {}
