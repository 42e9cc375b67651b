import { z } from 'zod';
import type { Upstream } from './providers.ts';

const Answer = z.object({ data: z.array(z.object({ id: z.string().min(1).max(200) })).max(5000) });

/** The models that an OpenAI-compatible endpoint lists, or the reason why it lists none, as a sentence without secrets. */
export type LocalModels = { ok: true; ids: string[] } | { ok: false; reason: string };

/** Answers of `GET …/models` have 3 seconds: the service starts with or without them. */
const timeoutMs = 3_000;
const maxBytes = 4 * 1024 * 1024;

/** Asks `GET {base URL}/models`. Never throws, follows no redirect, reads at most 4 MB. */
export async function fetchLocalModels(upstream: Upstream): Promise<LocalModels> {
  try {
    const response = await fetch(`${upstream.baseUrl}/models`, {
      headers: {
        accept: 'application/json',
        ...(upstream.key === undefined ? {} : { authorization: `Bearer ${upstream.key}` }),
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.status !== 200 || response.body === null) {
      await response.body?.cancel();
      return { ok: false, reason: `it answered ${response.status}` };
    }
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of response.body) {
      size += part.byteLength;
      if (size > maxBytes) return { ok: false, reason: 'its answer is larger than 4 MB' };
      parts.push(part);
    }
    const parsed = Answer.safeParse(JSON.parse(Buffer.concat(parts).toString('utf8')));
    if (!parsed.success) return { ok: false, reason: 'its answer is not a list of models' };
    return { ok: true, ids: parsed.data.data.map((model) => model.id) };
  } catch (error) {
    return { ok: false, reason: reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'its answer is not JSON';
  if (error instanceof Error && error.name === 'TimeoutError') return `it did not answer within ${timeoutMs / 1000} s`;
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' ? `it cannot be reached (${code})` : 'it cannot be reached';
}
