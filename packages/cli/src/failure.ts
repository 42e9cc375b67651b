/** A failure whose message is shown to the user, without a stack: what went wrong and what to do next. */
export class Failure extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = 'Failure';
    this.exitCode = exitCode;
  }
}
