/** Gives each client an answer of a type that it accepts. The MCP SDK refuses requests that do not accept both types. */

/** The types that the protocol wants every client to accept. The SDK always sees both, because `fitted` converts its answer. */
export const bothTypes = 'application/json, text/event-stream';

/**
 * Returns the answer as JSON, unless the client names the type `text/event-stream`. A client that accepts only events gets a stream with
 * one event. The answer to a POST has one message at its end, so nothing is lost except progress.
 */
export async function fitted(accept: string | undefined, answer: Response): Promise<Response> {
  const takes = (type: string) => accept?.toLowerCase().includes(type) ?? false;
  const type = answer.headers.get('content-type') ?? '';
  if (type.startsWith('text/event-stream') && !takes('text/event-stream')) {
    const message = lastMessage(await answer.text());
    return message === undefined ? new Response(null, { status: 202 }) : converted(answer, message, 'application/json');
  }
  const takesOnlyEvents = takes('text/event-stream') && !takes('application/json') && !takes('*/*');
  if (type.startsWith('application/json') && takesOnlyEvents && answer.ok)
    return converted(answer, `event: message\ndata: ${await answer.text()}\n\n`, 'text/event-stream');
  return answer;
}

/** Returns the data of the last event of a stream; undefined if it has no event. */
const lastMessage = (stream: string): string | undefined =>
  stream
    .split(/\r?\n\r?\n/)
    .map((event) =>
      event
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice('data:'.length).trimStart())
        .join('\n'),
    )
    .findLast((data) => data !== '');

function converted({ status, headers }: Response, body: string, type: string): Response {
  const kept = new Headers(headers);
  kept.delete('content-length');
  kept.set('content-type', type);
  return new Response(body, { status, headers: kept });
}
