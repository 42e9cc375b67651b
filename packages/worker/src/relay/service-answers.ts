import { setTimeout as sleep } from 'node:timers/promises';
import type { OwnAnswers } from './relay.ts';
import { hasRunToken } from './run-token.ts';

/** The worker itself answers requests below this path, with which the agent starts and reads the services from container images. */
const servicesPath = '/sandbox/services/';

/** State of a service from a container image. */
export interface ServiceState {
  /** The output of the service since the previous answer; only the end if it is long. */
  readonly output: string;
  /** How the service ended; absent while it runs. */
  readonly ended?: string;
}

/** Returns the state of a service of the sandbox; undefined if the sandbox has no service with this name, or has not started it. */
export type AskService = (name: string, isStart: boolean) => Promise<ServiceState | undefined>;

/** Pause after each answer, so that a sandbox that asks all the time does not occupy the process. */
const pauseMs = 20;

/**
 * Answers POST requests, which start a service, and GET requests. Only the agent can send them, because they need the run token, which
 * commands of the run do not have. So a setup command cannot start a service and leave a secret of the setup in it.
 */
export function serviceAnswers(basePath: string, runToken: () => string, ask: AskService): OwnAnswers {
  const prefix = `${basePath}${servicesPath}`;
  let turn: Promise<unknown> = Promise.resolve();
  return (request, response) => {
    const { url = '', method } = request;
    if (!url.startsWith(prefix) || (method !== 'GET' && method !== 'POST')) return false;
    const end = (status: number, body?: ServiceState): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}));
    };
    if (!hasRunToken(request, runToken())) {
      end(401);
      return true;
    }
    const answered = turn.then(() => ask(url.slice(prefix.length), method === 'POST'));
    answered.then(
      (state) => end(state === undefined ? 404 : 200, state),
      () => end(503),
    );
    turn = answered.then(
      () => sleep(pauseMs),
      () => sleep(pauseMs),
    );
    return true;
  };
}
