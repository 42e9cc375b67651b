import type { RunMode } from '@runyard/contract/runs/message-origin';
import type { HarnessOutcome } from '../acp/outcome.ts';
import type { Driver, Turn } from '../harness/driver.ts';
import { newId } from '../new-id.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';
import { workingFolder } from '../workspace/working-folder.ts';
import type { TurnsOptions } from './turns-options.ts';

export interface TurnInput {
  /** The message of the user, as the conversation shows it. */
  readonly message: string;
  readonly prompt: Turn['prompt'];
  readonly mode: RunMode | undefined;
  readonly attachments: readonly WrittenAttachment[];
  /**
   * Called in the first turn, before its first event. The harness gets the prompt only after the service has stored that the agent has
   * started. Otherwise, if the sandbox is lost, the service would launch the run again and the work of the agent would be repeated.
   */
  readonly onStarted?: () => void;
  /** Session of an earlier process that the harness should load. */
  readonly load?: string | undefined;
}

/** Runs single turns of the execution. */
export interface TurnRunner {
  run(driver: Driver, input: TurnInput): Promise<HarnessOutcome>;
  /** Adds a notice to the beginning of the next turn. The notice explains a change since the last turn. */
  addOpeningNotice(name: string, data: unknown): void;
  /** Aborts when a person interrupts the turn in progress. */
  readonly interrupted: AbortSignal;
  /** Interrupts the turn with this number, even if the harness has not begun it yet. */
  interrupt(turn: number): void;
  /** Ends the turn in progress. Called when the sandbox must end. */
  endForLeave(): void;
}

/** The parts of the execution that single turns use. */
type RunnerParts = Pick<
  TurnsOptions,
  | 'position'
  | 'reporter'
  | 'record'
  | 'approvals'
  | 'harness'
  | 'workspace'
  | 'task'
  | 'notice'
  | 'interruptGraceMs'
  | 'harnessGraceMs'
>;

export function turnRunner(options: RunnerParts): TurnRunner {
  const { position, reporter, record, approvals, harness, workspace, task, notice } = options;
  let isRunning = false;
  let interruptedTurn = 0;
  const openingNotices: [name: string, data: unknown][] = [];
  let interruption = { turn: 0, controller: new AbortController() };

  function interruptionOfTurn(): AbortController {
    if (interruption.turn !== position.turn) interruption = { turn: position.turn, controller: new AbortController() };
    if (interruptedTurn === position.turn) interruption.controller.abort(new Error('interrupted'));
    return interruption.controller;
  }

  return {
    get interrupted() {
      return interruptionOfTurn().signal;
    },
    async run(driver, { message, prompt, mode, attachments, onStarted, load }) {
      const cwd = workingFolder(workspace, await task);
      const stepId = newId();
      position.stepId = stepId;
      isRunning = true;
      const ended = driver.run({
        cwd,
        stepId,
        prompt,
        isPlan: mode === 'plan',
        load,
        images: attachments.flatMap(({ image }) => image ?? []),
        onStarted: async () => {
          onStarted?.();
          const event = { type: 'turn_started' as const, step_id: stepId, prompt: message };
          reporter.emit(event);
          record.add(event);
          for (const [name, data] of openingNotices.splice(0)) notice(name, data);
          approvals.startTurn(stepId);
          if (onStarted !== undefined) await reporter.flush();
        },
        onEnded: (summary) =>
          reporter.emit({ type: 'turn_finished', step_id: stepId, ...(summary === '' ? {} : { summary }) }),
      });
      if (interruptedTurn === position.turn) driver.interrupt(options.interruptGraceMs);
      return await ended.finally(() => {
        isRunning = false;
        approvals.endTurn();
      });
    },
    addOpeningNotice: (name, data) => void openingNotices.push([name, data]),
    interrupt(turn) {
      interruptedTurn = turn;
      if (turn !== position.turn) return;
      interruptionOfTurn();
      harness.driver?.interrupt(options.interruptGraceMs);
    },
    endForLeave() {
      if (isRunning) harness.driver?.interrupt(options.harnessGraceMs);
    },
  };
}
