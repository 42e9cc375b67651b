import { maxSetupOutputBytes } from '@runyard/contract/limits';
import { maxMarkBytes } from '@runyard/contract/wire/left-out';
import { outputWindow } from '../commands/output-window.ts';

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
