/** Prepares the text of an agent's request for the store. All such text passes through here. */

import { createRedactor, type Redactor } from '../../redaction/redaction.ts';
import { storable } from '../../redaction/storable.ts';
import type { Engine } from '../engine.ts';
import type { RunSession } from './sessions.ts';

const redactors = new WeakMap<RunSession, Redactor>();

/** Returns the redactor of a session: it removes the run token and the service's own secrets. */
export function redactorOf(engine: Pick<Engine, 'secrets'>, session: RunSession): Redactor {
  const known = redactors.get(session) ?? createRedactor([session.token, ...engine.secrets]);
  redactors.set(session, known);
  return known;
}

/** Returns the value without secrets, and with U+FFFD in place of each NUL, in all strings and property names. */
export function withoutSecrets<T>(engine: Pick<Engine, 'secrets'>, session: RunSession, value: T): T {
  return storable(redactorOf(engine, session).value(value)) as T;
}
