import { setTimeout as sleep } from 'node:timers/promises';
import { outputsOf } from '../engine/demultiplex.ts';
import { type Engine, EngineError } from '../engine/engine.ts';
import { oomKillsOf } from '../engine/memory.ts';
import { keepOutputTail } from '../output-tail.ts';

/** How a container ended. */
export interface ContainerEnd {
  readonly exitCode: number;
  readonly outOfMemory: boolean;
  readonly outputTail: string;
}

/** A container that was started. */
export interface RunningContainer {
  /** Resolves when the kernel has ended every process in the container. */
  readonly ended: Promise<ContainerEnd>;
  oomKills(): Promise<number>;
  /** Returns the end of the output since the previous call. This part is not in `outputTail`. */
  takeOutput(): string;
}

interface State {
  readonly State: {
    readonly Status: string;
    readonly Pid: number;
    readonly ExitCode: number;
    readonly OOMKilled: boolean;
    readonly Error: string;
  };
}

/** Pause between two requests to an engine that does not answer, for example during its upgrade. */
const askAgainMs = 500;

/**
 * Starts an existing container and writes `input` to its standard input. Rejects with the engine's reason if the container does not
 * start.
 */
export async function startContainer(engine: Engine, name: string, input: string): Promise<RunningContainer> {
  const { socket, head } = await engine.attach(name);
  socket.on('error', () => {});
  const tail = keepOutputTail([outputsOf(socket, head)]);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  try {
    await engine.call('POST', `/containers/${name}/start`, { answerMs: 0 });
  } catch (error) {
    socket.destroy();
    throw error;
  }
  socket.end(input);
  const inspect = () => engine.call<State>('GET', `/containers/${name}/json`);
  const pid = await inspect().then(
    ({ State }) => State.Pid,
    () => 0,
  );
  let lastOomKills = 0;
  const oomKills = async (): Promise<number> => {
    lastOomKills = Math.max(lastOomKills, await oomKillsOf(pid));
    return lastOomKills;
  };

  /** Waits until the engine reports that the container has ended. Continues to wait if the engine is restarted meanwhile. */
  const untilEnded = async (): Promise<State['State'] | undefined> => {
    for (;;) {
      try {
        await engine.call('POST', `/containers/${name}/wait`, { answerMs: 0 });
        const { State } = await inspect();
        if (State.Status === 'exited' || State.Status === 'dead') return State;
      } catch (error) {
        // 404: the container was removed, so it has ended.
        if (error instanceof EngineError && error.status === 404) return undefined;
      }
      await sleep(askAgainMs);
    }
  };

  const ended = (async (): Promise<ContainerEnd> => {
    const state = await untilEnded();
    tail.close();
    // Waits until the engine has sent the whole output and closes the connection, but at most two seconds.
    await Promise.race([closed, sleep(2000)]);
    socket.destroy();
    const killed = state?.OOMKilled === true || lastOomKills > 0;
    return { exitCode: state?.ExitCode ?? 137, outOfMemory: killed, outputTail: tail.text() };
  })();
  return { ended, oomKills, takeOutput: tail.take };
}
