/** Assigns queued executions to the connections of this process that have free slots. */

import { setTimeout as delay } from 'node:timers/promises';
import { allowedHostsOf } from '@runyard/contract/egress/network';
import { runnerOf } from '@runyard/contract/runs/runner';
import type { TaskAssignment } from '@runyard/contract/workers/worker-protocol';
import { oneAtATime } from '../../platform/serving/one-at-a-time.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { withClosableNetwork } from '../../runs/executions/fresh-checks/network-of-check.ts';
import { type Assignment, assign, mostAtOnce } from '../../runs/executions/queue/assign.ts';
import { requeue } from '../../runs/executions/transitions/transitions.ts';
import {
  evictBeyondLimit,
  freeSlotsOf,
  hasFreeSlot,
  leastDepthOf,
  type OpenConnection,
  type OpenConnections,
  takenSlots,
} from './open-connection.ts';

export interface Dispatcher {
  /** Looks at the queue, and assigns executions until no slot is free or no execution is queued. */
  dispatch(): Promise<void>;
  /** Like `dispatch`, without waiting for the end. Logs a failure. Called when the queue may have changed. */
  queueChanged(): void;
  /** Called when a connection has a free slot. Does not ask the database again while the queue is known to have no execution for it. */
  slotFreed(): void;
  stop(): Promise<void>;
}

const isOfSamePool = (one: OpenConnection, other: OpenConnection): boolean =>
  one.teamId === other.teamId && (other.teamId === null || one.workerId === other.workerId);

/** Returns whether `one` can take every run that `other` can take. Does not consider retries, which avoid one worker. */
const coversWorkOf = (one: OpenConnection, other: OpenConnection): boolean =>
  isOfSamePool(one, other) &&
  (one.runsImages || !other.runsImages) &&
  (one.holdsHosts || !other.holdsHosts) &&
  (one.runsServiceImages || !other.runsServiceImages) &&
  leastDepthOf(one) <= leastDepthOf(other);

/** Pause after another transaction has locked the queued executions, in milliseconds. */
const contendedMs = 5;

/**
 * Makes the dispatcher of this process. `agentArguments` returns the run's arguments for the agent. `sidecarImage` has the agent for public
 * workers.
 */
export function makeDispatcher(
  deps: ExecutionDeps,
  connections: OpenConnections,
  agentArguments: (assignment: Assignment) => string[],
  sidecarImage?: string,
): Dispatcher {
  let isStopped = false;
  /** Grows each time that the queue may have changed. */
  let queueVersion = 0;
  /** The connections for which the queue had no execution, each with the state of the queue and of the connection at that time. */
  const foundNothing = new WeakMap<OpenConnection, string>();
  const stateOf = (connection: OpenConnection) => `${queueVersion} ${leastDepthOf(connection)}`;

  /** Takes over an assigned execution. */
  async function takeOver(assignment: Assignment): Promise<void> {
    const { runId, assignmentId, executionId, connectionId } = assignment;
    const connection = connections.get(connectionId);
    // If the connection was lost during the assignment, the execution returns to the queue.
    if (connection === undefined) {
      await requeue(deps.db, { runId, executionId, args: { assignment_id: assignmentId } });
      return;
    }
    // Forget earlier executions of the run, which have all ended. The public worker does not report the end of a task that it handed to
    // another machine.
    for (const [earlier, held] of connection.executions)
      if (held.runId === runId) connection.executions.delete(earlier);
    connection.executions.set(executionId, { runId, assignmentId, idle: false, awaits: false, leaving: false });
    const isPublic = connection.instanceId === null;
    connection.send(assignmentMessage(assignment, agentArguments(assignment), { isPublic, sidecarImage }));
  }

  /** Assigns executions to free slots of connections that can take the same runs. Marks connections for which the queue has none. */
  async function fill(group: readonly OpenConnection[]): Promise<'again' | 'look_for_retries'> {
    const [first] = group;
    if (!first) return 'again';
    const states = new Map(group.map((connection) => [connection, stateOf(connection)]));
    const slots = slotsOf(group);
    const { assignments, isContended, hasRetries } = await assign(deps, {
      slots: slots.map(({ id, workerId, instanceId }) => ({ connectionId: id, workerId, workerInstance: instanceId })),
      pool: first.teamId === null ? '' : first.workerId,
      teamId: first.teamId,
      runsImages: first.runsImages,
      holdsHosts: first.holdsHosts,
      runsServiceImages: first.runsServiceImages,
      leastDepth: leastDepthOf(first),
    });
    // A failure for a lost connection does not delay the assignments of the other connections.
    await Promise.all(assignments.map(takeOver));
    if (assignments.length > 0) for (const connection of group) await evictBeyondLimit(deps, connection);
    if (assignments.length === slots.length) return 'again';
    if (isContended) await delay(contendedMs * (1 + deps.random()));
    else if (hasRetries) return 'look_for_retries';
    else for (const [connection, state] of states) foundNothing.set(connection, state);
    return 'again';
  }

  /** Fills the connections until no connection has both a free slot and a queued execution. The least loaded connection is filled first. */
  async function pass(): Promise<void> {
    /** True: fill each connection alone, because a retry is queued, which avoids one worker. */
    let isAlone = false;
    for (;;) {
      const candidates = [...connections.values()].filter(
        (connection) => hasFreeSlot(connection) && foundNothing.get(connection) !== stateOf(connection),
      );
      const [next] = candidates.sort((a, b) => loadOf(a) - loadOf(b));
      if (!next || isStopped || deps.isPaused?.()) return;
      const group =
        isAlone || next.teamId !== null
          ? [next]
          : candidates.filter((each) => coversWorkOf(next, each) && coversWorkOf(each, next));
      if ((await fill(group)) === 'look_for_retries') isAlone = true;
      // Suppose that two connections can take every run that a third one can take. If the queue has no run for these two, it also has none
      // for the third one. One connection proves less: the queue may have a retry, which avoids one worker.
      const done = [...connections.values()].filter((each) => foundNothing.get(each) === stateOf(each));
      for (const connection of candidates)
        if (done.filter((each) => coversWorkOf(each, connection)).length >= 2)
          foundNothing.set(connection, stateOf(connection));
    }
  }

  const passes = oneAtATime(pass);
  const passSoon = () => {
    passes
      .run()
      .catch((error: unknown) => deps.log.error({ err: error }, 'assigning work failed; the next poll tries again'));
  };
  return {
    dispatch: async () => {
      queueVersion += 1;
      await passes.run();
    },
    queueChanged: () => {
      queueVersion += 1;
      passSoon();
    },
    slotFreed: passSoon,
    stop: async () => {
      isStopped = true;
      await passes.stop();
    },
  };
}

const loadOf = (connection: OpenConnection, more = 0): number => (takenSlots(connection) + more) / connection.slots;

/**
 * Returns the connections for the next runs, in order. Each run goes to the connection that has the lowest load at that time. A connection
 * gets no further run if this run would have to be deeper in its tree than the first one.
 */
function slotsOf(group: readonly OpenConnection[]): OpenConnection[] {
  const slots: OpenConnection[] = [];
  const added = new Map(group.map((connection) => [connection, 0]));
  while (slots.length < mostAtOnce) {
    const [next] = [...added]
      .filter(([connection, more]) => more < freeSlotsOf(connection))
      .sort(([a, ofA], [b, ofB]) => loadOf(a, ofA) - loadOf(b, ofB));
    if (!next) break;
    const [connection, more] = next;
    slots.push(connection);
    added.set(connection, more + 1);
  }
  return slots;
}

/** Removes the MCP servers. Workers of other kinds put them into a command line, so their headers would reach a sandbox. */
function withoutMcpServers({ mcp_servers: _, ...config }: Assignment['config']): Assignment['config'] {
  return config;
}

/**
 * Returns the message that assigns an execution to a worker. A public worker reports its setup steps with the run token, which it expects
 * in `WARP_API_KEY`. `sidecarImage` is for public workers that mount the agent into containers. If such a worker runs agents without a
 * container, the arguments tell the agent which image is missing.
 */
export function assignmentMessage(
  assignment: Assignment,
  additionalArguments: string[],
  worker: { readonly isPublic?: boolean; readonly sidecarImage?: string | undefined } = {},
): TaskAssignment {
  const { image } = assignment;
  const { isPublic = false } = worker;
  const sidecarImage = isPublic ? worker.sidecarImage : undefined;
  const imageArguments = sidecarImage === undefined || image === null ? [] : ['--docker-image', image];
  const shape = runnerOf(assignment.config)?.instance_shape;
  const { config, allowedHosts } = withClosableNetwork(assignment.config, allowedHostsOf(assignment.network));
  return {
    type: 'task_assignment',
    data: {
      task_id: assignment.runId,
      execution_id: assignment.executionId,
      assignment_id: assignment.assignmentId,
      task: {
        id: assignment.runId,
        title: assignment.title,
        task_definition: { prompt: assignment.prompt },
        created_at: assignment.createdAt,
        updated_at: assignment.updatedAt,
        owner: { Type: 'TEAM', Id: assignment.teamNumber },
        agent_config_snapshot: withoutMcpServers(config),
        agent_conversation_id: assignment.conversationId,
      },
      env_vars: { RUNYARD_RUN_TOKEN: assignment.runToken, ...(isPublic ? { WARP_API_KEY: assignment.runToken } : {}) },
      additional_oz_args: [...additionalArguments, ...imageArguments],
      ...(image === null ? {} : { docker_image: image }),
      ...(shape ? { instance_shape: shape } : {}),
      ...(sidecarImage === undefined ? {} : { sidecar_image: sidecarImage }),
      ...(assignment.limits ? { limits: assignment.limits } : {}),
      ...(assignment.system ? { system: assignment.system } : {}),
      ...(assignment.services.length > 0 ? { services: [...assignment.services] } : {}),
      ...(allowedHosts.length > 0 ? { allowed_hosts: [...allowedHosts] } : {}),
    },
  };
}
