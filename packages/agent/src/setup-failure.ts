import type { ErrorCode } from '@runyard/contract/wire/errors';

/** The workspace could not be prepared, or the harness could not be started. The run fails before its first turn. */
export class SetupFailure extends Error {
  override name = 'SetupFailure';
  readonly code: ErrorCode;
  constructor(message: string, code: ErrorCode = 'environment_setup_failed') {
    super(message);
    this.code = code;
  }
}
