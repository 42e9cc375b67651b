/** Shows which runs a delivery would start. Creates nothing. */
import type { SimulatedStart } from '@runyard/contract/webhooks/simulations';
import { Failure } from '../../exits/failure.ts';
import { jsonFrom } from '../../input/input-file.ts';
import { webhookHelp } from '../../input/options.ts';
import { type Members, request } from '../../route-commands/row.ts';
import { findWebhook } from '../../service/named.ts';

/** Flags that name a payload or a stored delivery. */
export const payloadFlags = {
  '--payload <file>': {
    member: 'payload',
    help: 'JSON file with the payload, - for standard input',
    read: (file: string | undefined) => (file === undefined ? undefined : jsonFrom(file)),
  },
  '--delivery <id>': {
    member: 'delivery_id',
    help: 'id of an accepted delivery; bin/runyard webhooks deliveries lists them',
  },
} as const;

/** Returns the members. @throws Failure unless they have exactly one of payload and delivery */
export function withOnePayload(members: Members): Members {
  if ((members.payload === undefined) === (members.delivery_id === undefined))
    throw new Failure('give one of --payload and --delivery');
  return members;
}

/** Returns the lines of an automation: `+` and the prompt if a run would start, `-` and the reason if no run would start. */
export function startLines({ automation_id, name, matched, reason, refusals = [], run }: SimulatedStart): string[] {
  const outcome = matched ? refusals.join('; ') || 'would start a run' : (reason ?? 'does not match');
  const sign = matched && refusals.length === 0 ? '+' : '-';
  const prompt = run?.prompt.split('\n') ?? [];
  return [`${sign} ${automation_id} ${name}: ${outcome}`, ...prompt.map((line) => `    ${line}`)];
}

export const simulate = request(
  'simulateDelivery',
  'simulate',
  'show the runs that a delivery would start, or the reason why it starts none; creates nothing',
  {
    arguments: [{ usage: '<uid>', help: webhookHelp, find: findWebhook }],
    flags: {
      ...payloadFlags,
      '--event <name>': {
        member: 'event',
        help: 'event, as the header of the sender names it, such as push of GitHub; with --payload',
      },
    },
    complete: withOnePayload,
    orJson: true,
    lines: ({ automations }) =>
      automations.length === 0 ? 'no automation selects the webhook' : automations.flatMap(startLines),
    notes: ({ would_accept }) => (would_accept ? [] : 'the webhook is disabled: its senders get 404'),
  },
);
