import { z } from 'zod';
import { NonBlank } from '../wire/primitives.ts';

/** `POST /harness-support/connections`: the proxy of a sandbox asks before it connects to a host that an approval rule names. */
export const HoldConnection = z
  .object({
    host: NonBlank.max(300).describe('Host name or IP address, in lower case'),
    port: z.int().min(1).max(65_535).describe('Port'),
  })
  .meta({ id: 'HoldConnection', description: 'A connection of a sandbox to a host' });

/** Decision about one connection. */
export const ConnectionDecision = z.enum(['allowed', 'denied', 'waiting']).meta({
  id: 'ConnectionDecision',
  description:
    'Decision about a connection. `allowed`: one connection, because no rule names the host, or a person approved it. `waiting`: no person has decided yet',
});
export type ConnectionDecision = z.infer<typeof ConnectionDecision>;

export const HoldConnectionResponse = z
  .object({ decision: ConnectionDecision })
  .meta({ id: 'HoldConnectionResponse', description: 'Whether the sandbox may connect' });
