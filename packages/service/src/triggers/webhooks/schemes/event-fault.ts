import type { SignatureScheme } from '@runyard/contract/webhooks/signature-schemes/scheme';
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
 * Returns why the event in the header cannot be right: the body, which is signed, is of another event. Undefined: they agree, or the body
 * does not show its event. Without this check, a recorded delivery could be sent again as another event. `header`: the header that the
 * webhook names instead of the sender's; its names of events may differ from those in `eventMember`.
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
