/** Errors of calls to the service after which the call is not repeated. */
import { firstPart } from '@runyard/contract/wire/shorten';
import { answersOfProxies } from '@runyard/system/answers-of-proxies';
import { parseProblem } from './problem.ts';

/** The execution of the run token has ended or was superseded (401). The agent may send no further report. */
export class Superseded extends Error {
  override name = 'Superseded';
}

/** The service refused a request permanently (4xx other than 401, 408 and 429). */
export class ServiceRefusal extends Error {
  override name = 'ServiceRefusal';
  readonly status: number;
  readonly errorCode: string | undefined;
  /** The message of the service without additions, for example as the answer to a command in the sandbox. */
  readonly detail: string;
  constructor(status: number, path: string, body: string) {
    const problem = parseProblem(body);
    const detail =
      problem?.detail ?? problem?.title ?? (problem ? undefined : answersOfProxies[status]) ?? firstPart(body, 500);
    super(`the service refused ${path.split('?')[0]} with ${status}: ${detail || 'no reason given'}`);
    this.status = status;
    this.detail = detail || `the service answered ${status}`;
    this.errorCode = problem?.error_code;
  }
}

/** The body of a request cannot be read, for example because its file became shorter. */
export class UnreadableBody extends Error {
  override name = 'UnreadableBody';
}

/** The answer is larger than the limit of the caller. */
export class AnswerTooLarge extends Error {
  override name = 'AnswerTooLarge';
}
