/** An example of an operation, and the values that examples share. */

/** A request that works in a newly installed service, and an example of the answer to this request. */
export interface Example {
  /** Query of the request: texts, numbers, lists as repeated parameters, and objects as `name[member]=value`. */
  readonly query?: Readonly<Record<string, unknown>>;
  /** JSON body of the request. */
  readonly body?: unknown;
  /** Body of the request, if the body is not JSON. */
  readonly bytes?: string;
  /** True: only pages of the service may send the request, so the example has an `Origin` header with the address of the service. */
  readonly fromPage?: true;
  /** Body of the answer: JSON, or the text of a stream. */
  readonly answer?: unknown;
}

/** Ids that the examples use. Each key is the name of the shell variable that replaces the id in a command. */
export const exampleIds = {
  RUN_ID: '019a1c52-7d1e-7c3a-9b60-4f1f0e6d2a10',
  CHILD_RUN_ID: '019a1c53-02aa-7f41-8d27-93c5a1e40b77',
  EXECUTION_ID: '019a1c52-7d20-7b15-a4ce-5d0c9a7f3e21',
  MESSAGE_SEQ: '6',
  CONVERSATION_ID: '019a1c52-7d1f-7e02-8a31-c2b7d4e5f608',
  SESSION_UUID: '019a1c52-9f04-7d6b-b5a9-10e8c7d2f3a4',
  ARTIFACT_UID: '019a1c52-b3c8-7a90-8e14-6b2d0f9c5a73',
  ATTACHMENT_ID: '019a1c52-7d1e-7f88-92ab-d41c3e05b6f9',
  FOLLOWUP_ID: '019a1c52-7d23-7a3c-8f50-b6c7d8e9fa03',
  FILE_ID: '019a1c52-c4d1-70e6-8b3f-2a9e7c610d58',
  ENVIRONMENT_UID: 'h3Kq8ZrT0mWxY5bNc2LpVd',
  KEY_UID: 'f7Jd2QsB9vXnR4kMa6TzLe',
  SCHEDULE_ID: '019a1c52-1f3b-7a66-b0c4-72d9e81f5a03',
  FIRE_ID: '019a1c52-1f3c-7d19-94e8-0b6a35c7f2d4',
  TEAM_UID: 'Vb2Ny7HdK9sWq4ZpX5tGcM',
  USER_UID: 'Ye6Ku3RwN8hBf1JxC4mSgP',
  INVITATION_ID: '019a1c54-70b8-7e25-b1f3-4d9a6c2e8f07',
  INVITATION_KEY: 'ryi_t5Wn0QxJc7VbLrY2mKzGdH8sFaP4uEoI9iTkR3vXyZ1',
  IDENTITY_UID: 'Dx9Lp2TgV5qZk7WnB3cRyH',
  SUBSCRIPTION_ID: '019a1c54-1102-7c9d-a7e5-8f30b2c4d619',
  SERVER_ID: '019a1c54-3c4d-7e15-8d29-f6a7b8c91da3',
  PASSKEY_ID: '019a1c54-6e32-7b5f-8d44-1c8a3f7b9e25',
  VIEW_ID: '019a1c54-5d21-7a4e-9c33-0b7f2e6a8d14',
  NOTIFICATION_UID: '019a1c54-6b12-7e33-8f40-2d9c7a1b5e06',
  SIGN_IN_CODE: 'Zk3vQ8mT1xWc7RyB5nLp0JdF4sHg2KuE6aVo9iXtMqY',
  CREDENTIAL_ID: '019a1c55-3b70-7e15-8d42-7c91a0f3b6e8',
  NAME: 'DEPLOY_TOKEN',
  DELIVERY_ID: '019a1c54-2a3b-7d04-9c18-e5f6a7b80c92',
  VERSION: '1',
  FACTORY_UID: 'p5Rk9YvB2nXsL8dTqJ4hWc',
  TASK_UID: 'Jc7Nw3TzQ5kXb9VrL2mGyP',
  WEBHOOK_UID: 'Zt6Gm1KcV8fRw3PyN9bQxL',
  AUTOMATION_UID: 'Hw4Cx2LsN7bVq9TzJ6kRyD',
  GUEST_INVITATION_ID: '019a1c56-4f21-7d30-9b52-e1c7a8d60f35',
  POOL_NAME: 'build-1',
  PROVIDER: 'anthropic',
  SCHEMA_VERSION: 'v1alpha1',
  DOCUMENT: 'factory.schema.json',
  PRINCIPAL_UID: 'Rf8Kd3VwN6yPq2LxT9bZmC',
  WEBHOOK_DELIVERY_ID: '019a1c54-2a3b-7d04-9c18-e5f6a7b80c94',
  APP_UID: 'Qm8Wd2ZkT6xNb4VsR9hLyC',
  INSTALLATION_UID: 'Kv3Xs7PqJ9cTf5LzB2nGwH',
} as const;

/** Times in the run that the examples describe. */
export const exampleTimes = {
  created: '2026-10-25T12:00:00.000Z',
  started: '2026-10-25T12:00:01.250Z',
  ended: '2026-10-25T12:00:02.000Z',
} as const;

/** The changed files of a run. */
export const exampleChanges = [
  {
    path: 'site',
    base_commit: '9f1c2ab0d47e6a5c3b8e1f20947d6c5b4a3f2e1d',
    branch: 'fix-login',
    files: [
      {
        path: 'login.ts',
        status: 'modified',
        additions: 1,
        deletions: 1,
        patch: '@@ -1 +1 @@\n-send();\n+sendOnce();\n',
      },
    ],
  },
] as const;

/** A prompt that needs no language model: the model `runbook` runs its shell blocks. */
export const runbookPrompt = 'Say hello.\n\n```sh\necho hello\n```';

/** The person and the team of the examples. */
export const exampleCreator = { type: 'user', uid: 'Qm4Tz8LcP1vXw6RnK3sYbJ', display_name: 'Administrator' } as const;
export const exampleScope = { type: 'Team', uid: 'Vb2Ny7HdK9sWq4ZpX5tGcM' } as const;

/** Query of a URL that the service has signed. */
export const signed = { expires: '1793016902', signature: 'u0bq5kV1…' } as const;
