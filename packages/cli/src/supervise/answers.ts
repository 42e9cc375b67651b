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
}

/** Asks the service at `origin` whether it is ready. */
export async function readReadiness(origin: string, timeoutMs: number): Promise<Readiness> {
  try {
    const { status, text } = await get(`${origin}/readyz`, timeoutMs);
    const { reason, degraded }: { reason?: unknown; degraded?: unknown } = Object(JSON.parse(text));
    const problem = [reason, degraded].find((text) => typeof text === 'string');
    return { answered: true, ready: isOk(status), problem: problem ?? null };
  } catch {
    return { answered: false, ready: false, problem: null };
  }
}
