/** Examples of the operations on credentials of code hosts. */
import { type Example, exampleCreator, exampleIds, exampleTimes } from '../wire/example.ts';

const credential = {
  id: exampleIds.CREDENTIAL_ID,
  scope: 'personal',
  kind: 'token',
  host: 'github.com',
  owner: 'acme',
  username: 'x-access-token',
  user: exampleCreator,
  created_at: exampleTimes.created,
};

export const codeHostExamples = {
  listCodeHostCredentials: { answer: { credentials: [credential] } },
  createCodeHostCredential: {
    body: { kind: 'token', owner: 'acme', token: 'github_pat_example' },
    answer: credential,
  },
  deleteCodeHostCredential: { answer: { success: true } },
} as const satisfies Record<string, Example>;
