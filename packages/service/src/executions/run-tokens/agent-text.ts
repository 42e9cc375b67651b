/** What an agent sends, as it may be stored: the one way from its requests into the tables. */

import { createRedactor, type Redactor } from '../../redaction/redaction.ts';
import { storable } from '../../redaction/storable.ts';
import type { Engine } from '../engine.ts';
import type { RunSession } from './sessions.ts';

const redactors = new WeakMap<RunSession, Redactor>();

/** The redactor for the agent of a session: of its run token and of the service's own secrets. */
export function redactorOf(engine: Pick<Engine, 'secrets'>, session: RunSession): Redactor {
  const known = redactors.get(session) ?? createRedactor([session.token, ...engine.secrets]);
  redactors.set(session, known);
  return known;
}

/** The value without secrets, and with U+FFFD in place of each NUL; in all its strings and names. */
export function withoutSecrets<T>(engine: Pick<Engine, 'secrets'>, session: RunSession, value: T): T {
  return storable(redactorOf(engine, session).value(value)) as T;
}
