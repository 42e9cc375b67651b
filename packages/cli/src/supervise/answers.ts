/** Returns true if a GET of this URL is answered with 2xx within `timeoutMs`. */
export async function answers(url: string, timeoutMs: number): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/** Answer of a service's `/readyz`. */
export interface Readiness {
  readonly answered: boolean;
  readonly ready: boolean;
  /** Why it is not ready, or which part does not work although it is ready; null: no problem. */
  readonly problem: string | null;
}

/** Asks the service at `origin` whether it is ready. */
export async function readReadiness(origin: string, timeoutMs: number): Promise<Readiness> {
  try {
    const response = await fetch(`${origin}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
    const { reason, degraded }: { reason?: unknown; degraded?: unknown } = Object(await response.json());
    const problem = [reason, degraded].find((text) => typeof text === 'string');
    return { answered: true, ready: response.ok, problem: problem ?? null };
  } catch {
    return { answered: false, ready: false, problem: null };
  }
}
