/** Parts that both drivers of generated TypeScript clients need. */

declare const process: { readonly env: Readonly<Record<string, string | undefined>> };

export const baseUrl = process.env.RUNYARD_URL ?? '';
export const key = process.env.RUNYARD_API_KEY ?? '';
export const prompt = process.env.PROMPT ?? '';

const longestRunMs = 120_000;

/** Returns the data of an answer; throws the problem if there is none. */
export function expectData<T>({ data, error }: { readonly data?: T; readonly error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

/** Reads a run until it has ended. */
export async function waitForEnd<T extends { readonly state: string }>(read: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + longestRunMs;
  while (Date.now() < deadline) {
    const run = await read();
    if (['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'].includes(run.state)) return run;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error('the run has not ended');
}
