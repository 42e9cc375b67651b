/** Columns of a run that decide whether its kind can be cancelled. */
export interface RunKind {
  readonly worker_host: string | null;
  readonly execution_location: string;
  readonly source: string;
}

/** Returns whether people can cancel a run of this kind: it is hosted, and no GitHub Action started it. */
export function isRunTypeCancellable(run: RunKind): boolean {
  return run.worker_host === null && run.execution_location === 'REMOTE' && run.source !== 'GITHUB_ACTION';
}
