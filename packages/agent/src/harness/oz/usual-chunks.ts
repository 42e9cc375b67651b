/** Converts unusual chunks from servers with an OpenAI-compatible API into the form that the SDK can read. */
import type { Fetch } from '../../service/model-fetch.ts';

/** Returns true for the few chunks that may need a change. All other chunks are not parsed. */
const isOdd = (data: string): boolean =>
  /"choices"\s*:\s*null|"arguments"\s*:\s*[{[]/.test(data) || !/"(?:choices|error)"\s*:/.test(data);

type Members = Record<string, unknown>;
const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : {};
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/**
 * Returns a chunk with an array of choices, and with the arguments of calls as text. Returns a text that is not a JSON object unchanged.
 */
export function usualChunk(data: string): string {
  if (!isOdd(data)) return data;
  let chunk: Members;
  try {
    chunk = membersOf(JSON.parse(data));
  } catch {
    return data;
  }
  if (Object.keys(chunk).length === 0) return data;
  chunk.choices ??= [];
  for (const choice of listOf(chunk.choices)) {
    for (const call of listOf(membersOf(membersOf(choice).delta).tool_calls)) {
      const functionMembers = membersOf(membersOf(call).function);
      if (typeof functionMembers.arguments === 'object' && functionMembers.arguments !== null)
        functionMembers.arguments = JSON.stringify(functionMembers.arguments);
    }
  }
  return JSON.stringify(chunk);
}

/** Returns a transform of lines that converts the data of each event into the usual form. */
function usualLines(): TransformStream<string, string> {
  let rest = '';
  const lineOf = (line: string): string => {
    const [, field = '', data = ''] = /^(data: ?)(.*?)\r?$/.exec(line) ?? [];
    return field === '' || data === '[DONE]' ? line : field + usualChunk(data);
  };
  return new TransformStream({
    transform(text, controller) {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      if (lines.length > 0) controller.enqueue(lines.map((line) => `${lineOf(line)}\n`).join(''));
    },
    flush(controller) {
      if (rest !== '') controller.enqueue(lineOf(rest));
    },
  });
}

/** Returns a `fetch` whose streams have chunks of the usual form. */
export function withUsualChunks(fetch: Fetch): Fetch {
  return async (input, init) => {
    const answer = await fetch(input, init);
    const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream');
    if (!answer.ok || !isStream || answer.body === null) return answer;
    const body = answer.body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(usualLines())
      .pipeThrough(new TextEncoderStream());
    return new Response(body, { status: answer.status, statusText: answer.statusText, headers: answer.headers });
  };
}
