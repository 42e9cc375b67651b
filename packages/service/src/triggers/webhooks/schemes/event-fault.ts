import type { SignatureScheme } from '@runyard/contract/signature-schemes/scheme';
import { memberAt } from './member-at.ts';

/** Returns the event that a signed body tells, in the name of the header; undefined: it tells none. */
function toldBy({ eventMember, eventMembers = {} }: SignatureScheme, body: unknown): string | undefined {
  if (eventMember !== undefined) {
    const name = memberAt(body, eventMember);
    return typeof name === 'string' ? name : undefined;
  }
  return Object.entries(eventMembers).find(([, members]) =>
    members.every((path) => memberAt(body, path) !== undefined),
  )?.[0];
}

/**
 * Returns why the header that names the event is not true: the body, which is signed, tells another event. Undefined: it is true, or the body
 * does not tell. Without this check, whoever has recorded a delivery could send it again as another event. `header`: the one that the webhook
 * names in place of the sender's; its names may be of another kind than those in `eventMember`.
 */
export function faultOfEvent(
  sender: SignatureScheme,
  event: string,
  body: unknown,
  header = sender.eventHeader,
): string | undefined {
  const isKnown =
    sender.eventMember === undefined ? Object.hasOwn(sender.eventMembers ?? {}, event) : header === sender.eventHeader;
  const told = isKnown ? toldBy(sender, body) : undefined;
  if (told === undefined || told === event) return undefined;
  return `the header ${header} names the event ${event}, but the signed body is of another one`;
}
