import { asObject, asString } from '../acp/tool-output.ts';

/** Returns an error as a readable sentence. JSON-RPC errors have their details in `data`. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const data = asObject((error as Error & { data?: unknown }).data);
  const detail = asString(data?.details) ?? asString(data?.message);
  return detail === undefined ? error.message : `${error.message}: ${detail}`;
}
