/** Cleans the values that an agent sends, before the service stores or logs them. */
import { createRedactor, type Redactor } from '@runyard/contract/redaction/redactor';
import { storable } from './storable.ts';

/** The service's own secrets, which must never reach the store. */
interface ServiceSecrets {
  readonly secrets: readonly string[];
}

/** The raw run token of the agent that sends the values. */
interface TokenHolder {
  readonly token: string;
}

const redactors = new WeakMap<TokenHolder, Redactor>();

/** Returns the redactor of a session: it removes the session's run token and the service's own secrets. */
export function redactorOf({ secrets }: ServiceSecrets, session: TokenHolder): Redactor {
  const known = redactors.get(session) ?? createRedactor([session.token, ...secrets]);
  redactors.set(session, known);
  return known;
}

/** Returns the value without secrets and with U+FFFD in place of each NUL, in all its strings and member names. */
export function withoutSecrets<T>(service: ServiceSecrets, session: TokenHolder, value: T): T {
  return storable(redactorOf(service, session).value(value)) as T;
}
