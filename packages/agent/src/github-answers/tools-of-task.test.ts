import { rehearsalTask } from '@runyard/contract/agent/rehearsal-task';
import { expect, test } from 'vitest';
import { githubToolsOf } from './tools-of-task.ts';

const environment = { config: { github_tools: { comment: 1 } } };

test.each([
  ['no list', {}, []],
  ['only the list of the environment, from an older service', { environment }, ['comment']],
  ['its own list', { environment, github_tools: { review: 2, add_labels: 1 } }, ['review', 'add_labels']],
  ['its own empty list', { environment, github_tools: {} }, []],
])('a task with %s has these tools', (_, members, names) => {
  expect(githubToolsOf({ ...rehearsalTask, ...members })).toEqual(names);
});
