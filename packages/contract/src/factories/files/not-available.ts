/**
 * Keys of the published format that this service does not support. They are listed for each kind of file by the path of the key. The
 * service accepts and stores any value of such a key, and reports that the key has no effect.
 */
import { z } from 'zod';

const credentialStrategy =
  'with CREATOR too, a run uses the credentials of its executor, who is the person or key that applied the definition';
const harnessAuth =
  "harnesses use their models through the gateway of this service, with the service's credentials; add the secret to secrets if the program needs it";
const identities = 'this service does not federate identities with cloud providers';

/** Each value says why the key has no effect, and which key to use instead. */
export const keysNotAvailable = {
  factory: {
    credentialStrategy,
    integrations: 'this service has no integrations; send events to a webhook',
    cloudProviders: identities,
    providers: identities,
    'agentDefaults.harness.auth': harnessAuth,
  },
  agent: { credentialStrategy, 'harness.auth': harnessAuth },
  automation: { credentialStrategy, 'harness.auth': harnessAuth },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;

export type FileWithKeysNotAvailable = keyof typeof keysNotAvailable;

/** Whose credentials runs use. Only EXECUTOR has an effect. */
export const CredentialStrategyOfFile = z
  .enum(['EXECUTOR', 'CREATOR'])
  .optional()
  .describe(
    'Whose credentials runs use; default EXECUTOR: the executor is the person or key that applied the definition. Not available on this service, kept without effect: CREATOR',
  );

/** Returns the sentence about a key that has no effect. */
export const notAvailableMessage = (path: string, reason: string): string =>
  `${path} is not available on this service and has no effect: ${reason}`;

/** Schema of an unsupported key at the top level of `factory.yaml`. */
export const notAvailableKey = (key: keyof typeof keysNotAvailable.factory) =>
  z
    .unknown()
    .optional()
    .describe(`Not available on this service, stored without effect: ${keysNotAvailable.factory[key]}`);
