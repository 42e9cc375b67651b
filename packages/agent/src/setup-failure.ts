import type { ErrorCode } from '@runyard/contract/wire/errors';

/** Thrown if the workspace could not be prepared or the harness could not be started. The run then fails before its first turn. */
export class SetupFailure extends Error {
  override name = 'SetupFailure';
  readonly code: ErrorCode;
  constructor(message: string, code: ErrorCode = 'environment_setup_failed') {
    super(message);
    this.code = code;
  }
}
