/** Passkeys (Web Authentication, level 3): people sign in without an API key and without an identity provider. */
import { z } from 'zod';
import { NonBlank, Text, Timestamp } from '../wire/primitives.ts';

/** The person has this number of minutes to answer a question of the authenticator. */
export const passkeyMinutes = 5;

const base64Url = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .regex(/^[A-Za-z0-9_-]+$/, { error: 'must be base64url' });

/** A credential id has at most 1,023 bytes (Web Authentication, 4). */
const CredentialId = base64Url(1364);
const clientData = base64Url(4096).describe('The origin of the page, and the challenge');
const credential = {
  id: CredentialId.describe('Id of the credential'),
  rawId: CredentialId.describe('The same id'),
  type: z.literal('public-key').describe('Kind of the credential'),
};

/** The answer of the browser after it has made a passkey. */
export const PasskeyRegistration = z
  .object({
    ...credential,
    response: z
      .object({
        clientDataJSON: clientData,
        attestationObject: base64Url(16_384).describe('The public key, and the state of the authenticator'),
        transports: z
          .array(Text.max(40))
          .max(10)
          .optional()
          .describe('How the browser reaches the authenticator, such as internal or usb'),
      })
      .meta({
        id: 'PasskeyRegistrationResponse',
        description: 'The answer of an authenticator that has made a passkey',
      }),
  })
  .meta({
    id: 'PasskeyRegistration',
    description: 'A new credential, as `RegistrationResponseJSON` of Web Authentication. Other members are ignored',
  });
export type PasskeyRegistration = z.infer<typeof PasskeyRegistration>;

/** The answer of the browser after the person has used a passkey. */
export const PasskeyAnswer = z
  .object({
    ...credential,
    response: z
      .object({
        clientDataJSON: clientData,
        authenticatorData: base64Url(4096).describe('State of the authenticator'),
        signature: base64Url(8192).describe('Signature of the authenticator'),
        userHandle: base64Url(88).optional().describe('UID of the person, as the authenticator stores it'),
      })
      .meta({ id: 'PasskeyAnswerResponse', description: 'The answer of an authenticator that has used a passkey' }),
  })
  .meta({
    id: 'PasskeyAnswer',
    description:
      'The use of a passkey, as `AuthenticationResponseJSON` of Web Authentication. Other members are ignored',
  });
export type PasskeyAnswer = z.infer<typeof PasskeyAnswer>;

const page = z.string().describe('Origin of the pages that can use the options: passkeys belong to this address');

export const PasskeySignInOptions = z
  .object({
    origin: page,
    options: z
      .record(z.string(), z.unknown())
      .describe('`PublicKeyCredentialRequestOptionsJSON` of Web Authentication'),
  })
  .meta({
    id: 'PasskeySignInOptions',
    description: `The question for the authenticator of a person who signs in. It can be answered once, within ${passkeyMinutes} minutes`,
  });

export const NewPasskeyOptions = z
  .object({
    origin: page,
    options: z
      .record(z.string(), z.unknown())
      .describe('`PublicKeyCredentialCreationOptionsJSON` of Web Authentication'),
  })
  .meta({
    id: 'NewPasskeyOptions',
    description: `The question for the authenticator that makes a passkey. It can be answered once, within ${passkeyMinutes} minutes`,
  });

export const InvitedPasskeyRequest = z
  .object({
    key: Text.min(1).max(300).describe('Key of the invitation'),
    display_name: NonBlank.max(200).describe('Your name, at most 200 characters'),
  })
  .meta({ id: 'InvitedPasskeyRequest', description: 'A person who accepts an invitation with a new passkey' });

const PasskeyName = NonBlank.max(100).describe('Name for people, at most 100 characters');

export const Passkey = z
  .object({
    id: z.string().describe('Id of the passkey'),
    name: PasskeyName,
    is_synced: z.boolean().describe('True: the authenticator keeps copies of it on other devices of the person'),
    created_at: Timestamp.describe('When it was added, RFC 3339 in UTC'),
    last_used_at: Timestamp.optional().describe('Last sign-in with it; absent: never'),
    is_current: z.literal(true).optional().describe('True: it signed in the browser that sent this request'),
  })
  .meta({ id: 'Passkey', description: 'A passkey of a person' });
export type Passkey = z.infer<typeof Passkey>;

export const ListPasskeysResponse = z
  .object({ passkeys: z.array(Passkey).describe('Passkeys of the caller, oldest first') })
  .meta({ id: 'ListPasskeysResponse', description: 'Passkeys' });

export const CreatePasskeyRequest = z
  .object({ name: PasskeyName, passkey: PasskeyRegistration })
  .meta({ id: 'CreatePasskeyRequest', description: 'A passkey to add' });
export type CreatePasskeyRequest = z.infer<typeof CreatePasskeyRequest>;

export const UpdatePasskeyRequest = z
  .object({ name: PasskeyName })
  .meta({ id: 'UpdatePasskeyRequest', description: 'The new name of a passkey' });

/** A new person, who has just made a passkey, accepts an invitation. */
export const InvitedWithPasskey = z
  .object({
    key: Text.min(1).max(300).describe('Key of the invitation'),
    display_name: NonBlank.max(200).describe('Your name, at most 200 characters'),
    name: PasskeyName.describe('Name of the passkey for people, at most 100 characters'),
    passkey: PasskeyRegistration,
  })
  .meta({ id: 'InvitedWithPasskey', description: 'A new person with a passkey, who accepts an invitation' });
export type InvitedWithPasskey = z.infer<typeof InvitedWithPasskey>;
