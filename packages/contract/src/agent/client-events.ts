import { z } from 'zod';
import { Text, Timestamp } from '../wire/primitives.ts';

/** Maximum number of client events that a run keeps. Further events are accepted and dropped. */
export const maxClientEvents = 1_000;

/** A setup step of a worker, or another event that a program with the run's token reports for the timeline. */
export const ClientEvent = z
  .object({
    event_uuid: Text.min(1)
      .max(100)
      .describe('Id that the program chooses. A repeated event with this id is not kept again'),
    event_name: Text.min(1).max(100).describe('Name of the step, such as `setup_worker_image_pull`'),
    timestamp: Timestamp.describe('When it happened, RFC 3339'),
    payload: z
      .object({
        start_ts: Timestamp.optional().describe('When the step began, RFC 3339'),
        finish_ts: Timestamp.optional().describe('When the step ended, RFC 3339'),
        latency_ms: z.number().min(0).max(Number.MAX_SAFE_INTEGER).optional().describe('Duration in milliseconds'),
        is_error: z.boolean().optional().describe('True: the step failed'),
      })
      .meta({ id: 'ClientEventPayload', description: 'Measures of a step' })
      .optional()
      .describe('Measures of the step; absent: the event is no step'),
  })
  .meta({ id: 'ClientEvent', description: 'An event of a program that prepares or runs the sandbox of a run' });
export type ClientEvent = z.infer<typeof ClientEvent>;
