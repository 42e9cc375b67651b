/** Recognises temporary failures of the database, the disk and the bucket. After such a failure, the same request may succeed later. */
import { sqlState } from './connections.ts';

/**
 * `database`: the connection to the database was lost or could not be opened. `disk`: the disk is full. `blobs`: the bucket does not answer.
 */
export type UnavailableReason = 'database' | 'disk' | 'blobs';

/** Thrown instead of a temporary error. Has the message and the code of the temporary error, which is the `cause`. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
  readonly reason: UnavailableReason;
  readonly code: string | undefined;
  constructor(reason: UnavailableReason, cause: Error) {
    super(cause.message, { cause });
    this.reason = reason;
    this.code = sqlState(cause);
  }
}

/**
 * Error codes of a connection that was lost or refused. Codes of PostgreSQL (appendix A of its manual): 08 is a connection exception;
 * 57P01 to 57P05 mean that the server shuts down, has crashed, is starting or timed out; 53300 means too many clients; 25P03 means
 * idle in a transaction for too long. The others are codes of the operating system.
 */
const lostCodes =
  /^(08...|57P0[1235]|53300|25P03|ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|ENOTFOUND|EAI_AGAIN)$/;

/** Messages of the errors of `pg` and `pg-pool` that have no code. */
const lostMessages =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/;

/** Error codes of a full disk: of PostgreSQL (`disk_full`) and of the file system. */
const fullCodes = ['53100', 'ENOSPC', 'EDQUOT'];

/**
 * Returns the error to throw for an error of a connection, a statement or a file: `StoreUnavailable` if it is temporary, else the error
 * itself.
 */
export function asUnavailable(error: unknown, of: UnavailableReason): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailable) return error;
  const code = sqlState(error);
  if (code !== undefined && fullCodes.includes(code)) return new StoreUnavailable('disk', error);
  const isLost = code === undefined ? lostMessages.test(error.message) : lostCodes.test(code);
  return of === 'database' && isLost ? new StoreUnavailable('database', error) : error;
}
