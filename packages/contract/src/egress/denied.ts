import { z } from 'zod';
import { maxDeniedShown } from '../limits.ts';
import { type DeniedReason, deniedReasons } from './denied-reasons.ts';

export const deniedReasonNames = Object.keys(deniedReasons) as [DeniedReason, ...DeniedReason[]];

/** A connection that the proxy of a sandbox denied, with the number of tries. */
export const DeniedConnection = z.object({
  /** The host as the program wrote it, shortened. */
  host: z.string().max(300),
  /** The port; 0 if the program named no port. */
  port: z.int().min(0).max(65_535),
  reason: z.enum(deniedReasonNames),
  count: z.int().positive(),
});
export type DeniedConnection = z.infer<typeof DeniedConnection>;

/**
 * Denied connections of an execution. There is one message for each new combination of host, port and reason, up to `maxDeniedShown`, and
 * one final message with all counts.
 */
export const DeniedConnections = z.object({
  /**
   * Number of the message. 1 to `maxDeniedShown`: the message is about the first try to reach a host. `maxDeniedShown` + 1: it has the
   * counts at the end of the sandbox.
   */
  number: z
    .int()
    .min(1)
    .max(maxDeniedShown + 1),
  connections: z.array(DeniedConnection).max(maxDeniedShown),
  /** Number of all attempts, including those that `connections` omits. */
  total: z.int().positive(),
});
export type DeniedConnections = z.infer<typeof DeniedConnections>;
