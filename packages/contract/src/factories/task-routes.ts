import { z } from 'zod';
import { teamReads, teamWrites } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import { Text } from '../wire/primitives.ts';
import type { Route } from '../wire/route.ts';
import {
  CreateFactoryTaskRequest,
  FactoryTask,
  FindFactoryTaskQuery,
  ListFactoryTasksQuery,
  ListFactoryTasksResponse,
  SearchFactoryTasksQuery,
  SearchFactoryTasksResponse,
  UpdateFactoryTaskRequest,
} from './factory-tasks.ts';

const factory = z.object({ factoryUid: z.string().meta({ description: 'UID of the factory' }) });
const task = factory.extend({ taskUid: z.string().meta({ description: 'UID of the task' }) });
const noFactory = 'No such factory, or it belongs to another team';
const noTask = { 404: 'No such task, or it belongs to another factory or team' };
const path = '/factory/{factoryUid}/tasks';
const taskPath = `${path}/{taskUid}` as const;
const theTask = { status: 200, description: 'The task', schema: FactoryTask } as const;

export const factoryTaskRoutes = {
  listFactoryTasks: {
    method: 'GET',
    path,
    tag: 'factories',
    summary: 'List the tasks of a factory',
    allow: teamReads,
    params: factory,
    query: ListFactoryTasksQuery,
    answer: { status: 200, description: 'A page of tasks', schema: ListFactoryTasksResponse },
    errors: { 404: noFactory, 400: 'A wrong value, or a cursor of another list' },
  },
  createFactoryTask: {
    method: 'POST',
    path,
    tag: 'factories',
    summary: 'Create a task for a conversation',
    description: 'Starts nothing. `POST /factory/{factoryUid}/runs` starts a run together with its task.',
    allow: teamWrites,
    params: factory,
    body: CreateFactoryTaskRequest,
    once: 'createFactoryTask',
    answer: { status: 201, description: 'Created', schema: FactoryTask },
    errors: {
      404: noFactory,
      400: 'A wrong value, or a conversation that the team does not have or that belongs to a child run',
      409: 'The conversation has a task, or the Idempotency-Key was used with another body',
    },
  },
  getFactoryTask: {
    method: 'GET',
    path: taskPath,
    tag: 'factories',
    summary: 'Read a task with its run and its outputs',
    allow: teamReads,
    params: task,
    answer: theTask,
    errors: noTask,
  },
  updateFactoryTask: {
    method: 'PATCH',
    path: taskPath,
    tag: 'factories',
    summary: 'Change title, description or stage of a task',
    description: 'The last write wins. Changing the stage does not change the run.',
    allow: teamWrites,
    params: task,
    body: UpdateFactoryTaskRequest,
    answer: theTask,
    errors: { ...noTask, 400: 'A wrong value' },
  },
  deleteFactoryTask: {
    method: 'DELETE',
    path: taskPath,
    tag: 'factories',
    summary: 'Delete a task',
    description: 'Its conversation, runs and artifacts stay, and the conversation can get another task.',
    allow: teamWrites,
    params: task,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: noTask,
  },
  cancelFactoryTask: {
    method: 'POST',
    path: `${taskPath}/cancel`,
    tag: 'factories',
    summary: 'Cancel a task with its run',
    description:
      'Cancels the current run and all live runs below it, and sets the stage to CANCELLED. If the run has ended, only the live runs below it are cancelled.',
    allow: teamWrites,
    params: task,
    answer: theTask,
    errors: {
      ...noTask,
      409: 'The run is PENDING, which lasts at most 30 s; try again',
      422: 'The run is self-hosted, local or of a GitHub Action. Nothing was changed',
    },
    endsSomething: true,
  },
  getFactoryTaskByConversation: {
    method: 'GET',
    path: '/factory/{factoryUid}/task-by-conversation',
    tag: 'factories',
    summary: 'Read the task of a conversation',
    allow: teamReads,
    params: factory,
    query: z.object({ conversation_id: Text.max(200).describe('Id of the conversation') }),
    answer: theTask,
    errors: { 404: 'The factory has no task for this conversation', 400: 'A wrong value' },
  },
  getFactoryTaskByRun: {
    method: 'GET',
    path: '/factory/{factoryUid}/task-by-run',
    tag: 'factories',
    summary: 'Read the task that a run works for',
    description: 'The task of the conversation of the highest run above it, or of the run itself.',
    allow: teamReads,
    params: factory,
    query: z.object({ run_id: Text.max(200).describe('Id of any run of the task') }),
    answer: theTask,
    errors: { 404: 'The factory has no task that this run works for', 400: 'A wrong value' },
  },
  searchFactoryTasks: {
    method: 'GET',
    path: '/factory-tasks',
    tag: 'factories',
    summary: 'Search the tasks of all factories by their titles',
    allow: teamReads,
    query: SearchFactoryTasksQuery,
    answer: { status: 200, description: 'The tasks', schema: SearchFactoryTasksResponse },
    errors: { 400: 'A wrong value' },
  },
  findFactoryTask: {
    method: 'GET',
    path: '/factory-tasks/find',
    tag: 'factories',
    summary: 'Find the task that a reference names',
    description: 'The last created one, if several tasks of the team match.',
    allow: teamReads,
    query: FindFactoryTaskQuery,
    answer: theTask,
    errors: { 404: 'The team has no such task', 400: 'A wrong value' },
  },
} as const satisfies Record<string, Route>;
