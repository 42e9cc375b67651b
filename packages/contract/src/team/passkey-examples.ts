/** Examples of the operations on passkeys. */
import { type Example, exampleIds, exampleTimes } from '../wire/example.ts';

const passkey = {
  id: exampleIds.PASSKEY_ID,
  name: 'Laptop',
  is_synced: true,
  created_at: exampleTimes.created,
  last_used_at: exampleTimes.ended,
};
const credentialId = 'Ad3kX9vQpW0rTzLmY5bNcE';
const challenge = 'eyJhYm91dCI6eyJ1c2UiOiJhZGQifX0';
const timeout = 300_000;
const origin = 'https://runyard.example.com';
const created = {
  origin,
  options: {
    challenge,
    rp: { name: 'Runyard', id: 'runyard.example.com' },
    user: { id: 'SkN0cFZuNHU1R0Jr', name: 'Ada', displayName: 'Ada' },
    pubKeyCredParams: [{ type: 'public-key', alg: -7 }],
    timeout,
    attestation: 'none',
    excludeCredentials: [],
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  },
};

export const passkeyExamples = {
  listPasskeys: { answer: { passkeys: [{ ...passkey, is_current: true }] } },
  startPasskey: { answer: created },
  createPasskey: {
    body: {
      name: 'Laptop',
      passkey: {
        id: credentialId,
        rawId: credentialId,
        type: 'public-key',
        response: { clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0', attestationObject: 'o2NmbXRkbm9uZQ' },
      },
    },
    answer: passkey,
  },
  updatePasskey: { body: { name: 'Laptop' }, answer: passkey },
  deletePasskey: { answer: { success: true } },
  startPasskeySignIn: {
    answer: {
      origin,
      options: {
        challenge,
        rpId: 'runyard.example.com',
        allowCredentials: [],
        userVerification: 'required',
        timeout,
      },
    },
  },
  startInvitedPasskey: { body: { key: exampleIds.INVITATION_KEY, display_name: 'Ada' }, answer: created },
} satisfies Record<string, Example>;
