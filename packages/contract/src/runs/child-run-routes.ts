import { z } from 'zod';
import type { Route } from '../wire/route.ts';
import {
  ChildRun,
  ChildRunList,
  ChildRunQuery,
  ChildRunRequest,
  ChildRunResponse,
  ListChildRunsQuery,
  RunMessage,
  RunMessageResponse,
} from './child-runs.ts';

const common = { tag: 'harness', namesChecked: true } as const;
const allow = { run: 'at_work', startsRuns: true } as const;
const child = z.object({ childRunId: z.string().meta({ description: 'Id of a run that the caller started' }) });
const notAllowed = "The caller's configuration does not let it start runs";
const noChild = 'The caller has started no such run';

/** Routes with which an agent starts runs, waits for them, and sends messages to other runs of its tree. */
export const childRunRoutes = {
  startChildRun: {
    ...common,
    allow,
    method: 'POST',
    path: '/harness-support/child-runs',
    summary: 'Start a child run',
    description:
      'Allowed by `config.child_runs` or the mode `orchestrate`. The run has the same team and creator. At most `config.child_runs.max_live` (default 8) child runs may be live at the same time, and 100 runs in the whole tree.',
    body: ChildRunRequest,
    bodyLimitBytes: 4 * 1024 * 1024,
    once: 'startChildRun',
    answer: { status: 200, description: 'Created; the agent starts by itself', schema: ChildRunResponse },
    errors: {
      400: 'A wrong type, an unknown model, harness or environment, or too many levels of child runs',
      403: `${notAllowed}, or not with this member`,
      409: 'Too many child runs are live, the caller has no turn in progress or was cancelled, or the Idempotency-Key was used with another body',
    },
  },
  listChildRuns: {
    ...common,
    allow,
    method: 'GET',
    path: '/harness-support/child-runs',
    summary: 'List child runs, oldest first, or wait for them',
    query: ListChildRunsQuery,
    answer: { status: 200, description: 'The runs, as they are after the wait', schema: ChildRunList },
    errors: { 403: notAllowed, 404: noChild },
  },
  getChildRun: {
    ...common,
    allow,
    method: 'GET',
    path: '/harness-support/child-runs/{childRunId}',
    summary: 'Read a child run, or wait for it',
    description: 'The wait ends when the run has ended or is BLOCKED.',
    params: child,
    query: ChildRunQuery,
    answer: { status: 200, description: 'The run, as it is after the wait', schema: ChildRun },
    errors: { 403: notAllowed, 404: noChild },
  },
  cancelChildRun: {
    ...common,
    allow,
    method: 'POST',
    endsSomething: true,
    path: '/harness-support/child-runs/{childRunId}/cancel',
    summary: 'Cancel a child run and all runs below it',
    description: 'A run that has ended does not change. If it is PENDING, the request waits until it can be cancelled.',
    params: child,
    answer: { status: 200, description: 'The run', schema: ChildRun },
    errors: { 403: notAllowed, 404: noChild, 409: 'The run is still PENDING; try again. Or the caller is not at work' },
  },
  sendRunMessage: {
    ...common,
    allow: { run: 'at_work' },
    method: 'POST',
    path: '/harness-support/messages',
    summary: 'Send a message to another run of the tree',
    description:
      'Sends a follow-up whose text names its sender. A run that has ended without a sandbox can be continued only by its parent. At most 60 a minute.',
    body: RunMessage,
    once: 'sendRunMessage',
    answer: { status: 200, description: 'Accepted', schema: RunMessageResponse },
    errors: {
      400: 'A wrong type, or a message to oneself',
      403: 'The content policy refuses the message; or the sandbox of the run holds a secret, and the author of a text that the caller follows may not use this secret',
      404: 'No such run in the tree of the caller',
      409: 'The run has ended, or it waits for a person; the caller has no turn in progress; or the Idempotency-Key was used with another body',
      429: 'More than 60 messages in a minute',
    },
  },
} as const satisfies Record<string, Route>;
