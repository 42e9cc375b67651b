import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { returnsResult } from './prompt-text.ts';
import type { RunResult, RunResultOptions, SubmitValue } from './run-result.ts';

export interface DeferredResultOptions extends Omit<RunResultOptions, 'folder'> {
  readonly folder: () => string;
  /** Called once with the path of the file for the result. */
  readonly onOpened: (file: string) => void;
}

/** The result of a run. Its code is loaded only if the task returns a result. */
export interface DeferredResult {
  /** Returns undefined if the run returns no result. */
  open(task: AgentTask): Promise<RunResult | undefined>;
  readonly submit: SubmitValue;
}

export function deferredResult({ folder, onOpened, ...options }: DeferredResultOptions): DeferredResult {
  let result: RunResult | undefined;
  return {
    async open(task) {
      if (result !== undefined || !returnsResult(task)) return result;
      const { runResult } = await import('./run-result.ts');
      result = runResult({ ...options, folder: folder() });
      onOpened(result.file);
      return result;
    },
    submit: async (value) => (await result?.submit(value)) ?? { ok: false, message: 'this run returns no result' },
  };
}
