import type { ServiceConnection, ServiceRequest } from '../service/connection.ts';

type Open = ServiceConnection['open'];

interface Session {
  /** The request `initialize` that opened the session. */
  readonly opening: ServiceRequest;
  /** Id of the session at the server. It changes when the server forgets the session. */
  id: string;
  renewal?: Promise<void> | undefined;
}

/** Maximum number of sessions that are renewed. A harness has one or two sessions with each server. */
const maxSessions = 16;

const header = 'mcp-session-id';

/**
 * Returns an `open` for the requests to one MCP server over HTTP. If the server has forgotten a session, because it restarted or because
 * the session was idle, the returned function opens a new session and sends the request again. The client keeps the first id of its
 * session. Requests in parallel share one new session. Source: Model Context Protocol, "Streamable HTTP", "Session Management": 404 for
 * a request with a session id means that the client must initialize again.
 */
export function keepMcpSessions(open: Open): Open {
  const sessions = new Map<string, Session>();

  const sendIn = (session: Session, request: ServiceRequest) =>
    open({ ...request, headers: { ...request.headers, [header]: session.id } });

  /** Opens a new session at the server. If the server refuses it, the session keeps its id. */
  async function renew(session: Session, { idleTimeoutMs, lane }: ServiceRequest): Promise<void> {
    const answer = await open({ ...session.opening, signal: undefined, idleTimeoutMs, lane });
    // The answer may be a stream that stays open. Its first bytes show that the server has the new session.
    for await (const _ of answer) break;
    const id = answer.headers[header];
    if (answer.statusCode !== 200 || typeof id !== 'string') return;
    const fresh: Session = { opening: session.opening, id };
    const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const headers = { ...session.opening.headers };
    delete headers['content-length'];
    (await sendIn(fresh, { method: 'POST', path: session.opening.path, headers, body, idleTimeoutMs, lane })).resume();
    session.id = id;
  }

  return async (request) => {
    const known = request.headers?.[header];
    const session = known === undefined ? undefined : sessions.get(known);
    if (session === undefined) {
      const answer = await open(request);
      const id = answer.headers[header];
      if (known === undefined && typeof id === 'string' && answer.statusCode === 200) {
        sessions.set(id, { opening: request, id });
        const [oldest] = sessions.keys();
        if (sessions.size > maxSessions && oldest !== undefined) sessions.delete(oldest);
      }
      return answer;
    }
    const used = session.id;
    const answer = await sendIn(session, request);
    if (request.method === 'DELETE') sessions.delete(known ?? '');
    if (answer.statusCode !== 404 || request.method === 'DELETE') return answer;
    answer.resume();
    if (session.id === used) {
      session.renewal ??= renew(session, request).finally(() => {
        session.renewal = undefined;
      });
      // If the server cannot be reached, the request below fails with the reason.
      await session.renewal.catch(() => {});
    }
    return await sendIn(session, request);
  };
}
