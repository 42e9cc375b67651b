/** Services that start from container images, beside the sandbox. */
import type { EnvironmentService } from '@runyard/contract/environments/services';
import { maxSetupOutputBytes } from '@runyard/contract/limits';
import { maxMarkBytes } from '@runyard/contract/wire/left-out';
import { delay } from '@runyard/system/backoff';
import { outputWindow } from '../commands/output-window.ts';
import type { ServiceConnection } from '../service/connection.ts';
import { SetupFailure } from '../setup-failure.ts';

/** Path below which the relay of Runyard's own worker starts and reads services. Other workers have no such path. */
const servicesPath = '/sandbox/services/';
/** The engine may copy the whole image to create the container. */
const startTimeoutMs = 120_000;
const readTimeoutMs = 10_000;
const maxAnswerBytes = 1024 * 1024;
const readIntervalMs = 250;

export const isOfImage = ({ image }: EnvironmentService): boolean => typeof image === 'string';

/**
 * Returns true if the services from images run already. The cluster starts all containers of a pod before the agent, and the pod has no
 * relay.
 */
export const areStarted = ({ relaySocket }: ServiceConnection): boolean => relaySocket === undefined;

/** A service that was started. */
export interface Running {
  readonly name: string;
  /** Id of its first process, if this process is in the sandbox. */
  readonly pid?: number | undefined;
  /** Returns the last lines since the previous call; an empty text if there are none. */
  takeOutput(): Promise<string>;
  /** How the program ended; undefined while it runs. */
  ended(): string | undefined;
  /** Resolves when the program has ended and its output has been read. */
  readonly exited: Promise<void>;
  /** Ends the agent's own work for the service. Only for a service whose processes are not in the sandbox. */
  stop?(): void;
}

/** Returns a window that keeps the last lines of a service. */
export const newServiceWindow = () => outputWindow(0, maxSetupOutputBytes - maxMarkBytes);

/** Returns a service that the cluster has started. The worker reports its output and its end. */
export const startedService = (name: string): Running => ({
  name,
  takeOutput: async () => '',
  ended: () => undefined,
  exited: new Promise<void>(() => {}),
});

/** Throws a `SetupFailure` if services run already. Called before a setup with secrets. */
export function refuseServicesOfPod(services: readonly EnvironmentService[], connection: ServiceConnection): void {
  if (areStarted(connection) && services.some(isOfImage))
    throw new SetupFailure(
      'The environment has secrets for the setup and services with an image. In a pod, such services run during the setup and could keep these secrets. Use a worker with RUNYARD_SANDBOX=docker, or remove one of the two.',
    );
}

/** Starts the container of a service through the worker's relay. Throws a `SetupFailure` if the worker cannot start services. */
export async function startContainer(
  name: string,
  connection: ServiceConnection,
  startSignal: AbortSignal,
): Promise<Running> {
  let window = newServiceWindow();
  let ended: string | undefined;
  const stopped = new AbortController();
  const exited = Promise.withResolvers<void>();

  const ask = async (method: 'GET' | 'POST', idleTimeoutMs: number, signal: AbortSignal): Promise<boolean> => {
    const request = { method, path: `${servicesPath}${name}`, signal, idleTimeoutMs };
    const { status, body } = await connection.call(request, () => maxAnswerBytes);
    if (status !== 200) return false;
    const state = JSON.parse(body.toString()) as { readonly output?: unknown; readonly ended?: unknown };
    if (typeof state.output === 'string') window.push(Buffer.from(state.output));
    if (typeof state.ended === 'string') {
      ended = state.ended;
      exited.resolve();
    }
    return true;
  };
  // A failure ends nothing: the container runs, and its state is asked again.
  const read = async (): Promise<unknown> => await ask('GET', readTimeoutMs, stopped.signal).catch(() => {});
  const follow = async (): Promise<void> => {
    while (ended === undefined && !stopped.signal.aborted) {
      await read();
      await delay(readIntervalMs, stopped.signal).catch(() => {});
    }
  };

  if (!(await ask('POST', startTimeoutMs, startSignal)))
    throw new SetupFailure(
      `The service ${name} has an image, and this worker cannot start services from container images. Use a worker with RUNYARD_SANDBOX=docker or kubernetes, or start the service with command alone.`,
    );
  void follow();
  return {
    name,
    async takeOutput() {
      if (ended === undefined) await read();
      const text = window.tailText();
      window = newServiceWindow();
      return text;
    },
    ended: () => ended,
    exited: exited.promise,
    stop: () => stopped.abort(),
  };
}
