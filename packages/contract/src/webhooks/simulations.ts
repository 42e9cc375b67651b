/** Simulated deliveries and schedule times, and the runs that they would start. */
import { z } from 'zod';
import { AmbientAgentConfig } from '../runs/config.ts';
import { Uuid } from '../wire/primitives.ts';
import { failedChecks } from './checks.ts';

const eventName = z
  .string()
  .regex(/^[A-Za-z0-9._:/-](?:[ A-Za-z0-9._:/-]{0,98}[A-Za-z0-9._:/-])?$/, {
    error: 'must be 1 to 100 characters of [A-Za-z0-9._:/-]',
  })
  .describe("Name of the event in the sender's header, such as push for GitHub; not together with delivery_id");

const simulated = {
  payload: z.unknown().optional().describe('JSON body of the delivery; not together with delivery_id'),
  delivery_id: Uuid.optional().describe('Accepted delivery to a webhook of the factory; its payload is used'),
  event: eventName.optional(),
};

const needsOne = {
  error: 'needs exactly one of payload and delivery_id',
  path: ['payload'],
};
const hasOne = (request: { readonly delivery_id?: string | undefined }): boolean =>
  Object.hasOwn(request, 'payload') !== (request.delivery_id !== undefined);

const noEvent = { error: 'comes from the delivery; leave this member out with delivery_id', path: ['event'] };
const hasOneEvent = (request: { readonly delivery_id?: string | undefined; readonly event?: string | undefined }) =>
  request.delivery_id === undefined || request.event === undefined;
/**
 * JSON Schema of a request that names a stored delivery. It cannot also name an event, because the stored delivery already has an event.
 */
const storedDelivery = { required: ['delivery_id'], not: { required: ['event'] } };

/** `POST /factory/{factoryUid}/webhooks/{webhookUid}/simulate`. */
export const SimulateDeliveryRequest = z
  .object(simulated)
  .refine(hasOne, needsOne)
  .refine(hasOneEvent, noEvent)
  .meta({
    id: 'SimulateDeliveryRequest',
    description: 'A delivery that is not sent',
    allOf: [{ oneOf: [{ required: ['payload'] }, storedDelivery] }],
  });
export type SimulateDeliveryRequest = z.infer<typeof SimulateDeliveryRequest>;

/** `POST /factory/{factoryUid}/automations/{automationUid}/dry-run`. */
export const DryRunRequest = z
  .object({
    ...simulated,
    webhook_uid: z
      .string()
      .max(100)
      .optional()
      .describe(
        'Webhook that would receive the delivery; absent: the first webhook that a trigger selects. Not together with schedule_name',
      ),
    schedule_name: z
      .string()
      .max(100)
      .optional()
      .describe(
        'Name of the schedule trigger that would fire; empty: the trigger without a name. In place of payload and delivery_id',
      ),
  })
  .refine(hasOneEvent, noEvent)
  .superRefine((request, context) => {
    const { schedule_name: name, delivery_id: id, event, webhook_uid: uid } = request;
    const sourceCount = [Object.hasOwn(request, 'payload'), id !== undefined, name !== undefined].filter(
      Boolean,
    ).length;
    if (sourceCount !== 1)
      context.addIssue({
        code: 'custom',
        path: ['payload'],
        message: 'needs exactly one of payload, delivery_id and schedule_name',
      });
    else if (name !== undefined && (event ?? uid) !== undefined)
      context.addIssue({
        code: 'custom',
        path: [event === undefined ? 'webhook_uid' : 'event'],
        message: 'belongs to deliveries; leave this member out with schedule_name',
      });
  })
  .meta({
    id: 'DryRunRequest',
    description: 'A delivery that is not sent, or a time of a schedule',
    allOf: [
      {
        oneOf: [
          { required: ['payload'] },
          storedDelivery,
          { required: ['schedule_name'], not: { anyOf: [{ required: ['event'] }, { required: ['webhook_uid'] }] } },
        ],
      },
    ],
  });
export type DryRunRequest = z.infer<typeof DryRunRequest>;

const SimulatedAttachment = z
  .object({
    file_name: z.string().describe('Name of the file'),
    mime_type: z.string().describe('Type of the file'),
    size_bytes: z.int().describe('Bytes of the file'),
  })
  .meta({ id: 'SimulatedAttachment', description: 'A file that the run would get' });

const SimulatedRun = z
  .object({
    title: z.string().describe('Title of the run'),
    prompt: z
      .string()
      .describe("The automation's prompt; for a delivery then the envelope that names webhook and delivery"),
    config: AmbientAgentConfig,
    metadata: z
      .record(z.string(), z.string())
      .describe('Metadata of the run. The delivery_id of a payload that was not delivered consists of zeros'),
    attachments: z
      .array(SimulatedAttachment)
      .describe('Files of the run: the body of the delivery; a schedule time has no files'),
  })
  .meta({ id: 'SimulatedRun', description: 'The run that the event would start' });

export const SimulatedStart = z
  .object({
    automation_id: z.string().describe('UID of the automation'),
    name: z.string().describe('Name of the automation'),
    matched: z.boolean().describe('True: one of its triggers matches, or the request named the schedule trigger'),
    reason: z.string().optional().describe('Why no trigger matches'),
    checks: failedChecks,
    would_start: z.boolean().describe('True: the event would start a run now'),
    refusals: z
      .array(z.string())
      .optional()
      .describe('Everything that would refuse or delay the run of a matching event; absent: nothing'),
    run: SimulatedRun.optional().describe('Absent: no trigger matches, or the request for the run is not valid'),
  })
  .meta({ id: 'SimulatedStart', description: 'The outcome that an automation would have for a delivery or a time' });
export type SimulatedStart = z.infer<typeof SimulatedStart>;

export const SimulateDeliveryResponse = z
  .object({
    would_accept: z.boolean().describe('False: the webhook is disabled, so that its senders get 404'),
    automations: z.array(SimulatedStart).describe('Each automation that selects the webhook'),
  })
  .meta({ id: 'SimulateDeliveryResponse', description: 'The runs that a delivery would start' });
export type SimulateDeliveryResponse = z.infer<typeof SimulateDeliveryResponse>;
