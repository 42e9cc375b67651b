import { sendPlain } from '@runyard/client/send-plain';

const get = (url: string, timeoutMs: number) =>
  sendPlain(url, { method: 'GET', headers: {}, signal: AbortSignal.timeout(timeoutMs) }, () => {});
const isOk = (status: number): boolean => status >= 200 && status < 300;

/** The answer of a service to `/readyz`. */
export interface Readiness {
  readonly answered: boolean;
  readonly ready: boolean;
  /** Why the service is not ready, or which part of a ready service does not work. Null if there is no problem. */
  readonly problem: string | null;
  /** By how much the clock of the service is ahead of the clock of this machine, to a second. Null if the answer has no time. */
  readonly aheadMs: number | null;
}

/** Describes a service that does not answer, or that nobody has asked. */
export const noAnswer: Readiness = { answered: false, ready: false, problem: null, aheadMs: null };

/** Asks the service at `origin` whether it is ready. */
export async function readReadiness(origin: string, timeoutMs: number): Promise<Readiness> {
  try {
    const { status, text, date } = await get(`${origin}/readyz`, timeoutMs);
    const answer: { status?: unknown; reason?: unknown; degraded?: unknown } = Object(JSON.parse(text));
    if (typeof answer.status !== 'string') return noAnswer;
    const problem = [answer.reason, answer.degraded].find((text) => typeof text === 'string');
    const aheadMs = date === undefined ? null : Date.parse(date) - Date.now();
    return { answered: true, ready: isOk(status), problem: problem ?? null, aheadMs };
  } catch {
    return noAnswer;
  }
}
