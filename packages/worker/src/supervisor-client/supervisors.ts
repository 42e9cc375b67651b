/** The supervisors of a worker: starts them, keeps their records, and adopts the supervisors of an earlier worker. */
import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { SandboxSpecification } from '../sandboxes/sandbox.ts';
import type { SandboxSupervisors } from '../sandboxes/supervisors.ts';
import { adoptSandboxes, type LeftSandbox } from './adopt.ts';
import { filesOf, supervisorsFolder, writeWhole } from './files.ts';
import { keepPlaces, type Places } from './places.ts';
import { bootId, type SupervisorRecord } from './records.ts';
import { startSupervisor } from './start.ts';
import { type SupervisedLog, type SupervisedSandbox, superviseSandbox } from './supervised-sandbox.ts';

/** The supervisors of a worker. */
export interface Supervisors extends SandboxSupervisors {
  /** Sandboxes of earlier workers, as found when this worker started. */
  readonly left: readonly LeftSandbox[];
  /** Removes the record of an execution after the service has confirmed its end. */
  forget(executionId: string): void;
  /** Leaves all sandboxes to the next worker. Supervisors without a sandbox end. */
  letGo(): Promise<void>;
}

/** Opens the supervisors of a state folder and adopts the sandboxes of earlier workers. The caller holds the lock of the data folder. */
export async function openSupervisors(
  stateRoot: string,
  label: string,
  adoptSeconds: number,
  log: SupervisedLog,
): Promise<Supervisors> {
  const left = await adoptSandboxes(stateRoot, adoptSeconds, log);
  const folders = new Map(left.map(({ record, folder }) => [record.execution.execution_id, folder]));
  const live = new Set<Pick<SupervisedSandbox, 'letGo'>>(left.map(({ sandbox }) => sandbox));
  if (left.length > 0)
    log.info(
      { live: left.filter(({ lives }) => lives).length, ended: left.filter(({ lives }) => !lives).length },
      'adopted the sandboxes of an earlier worker',
    );

  /** The places are made for the first sandbox and then used for all sandboxes, because all sandboxes of a worker use the same supervisor program. */
  let places: Places | undefined;

  const remove = (folder: string): void => {
    rm(folder, { recursive: true, force: true }).catch((error: Error) =>
      log.warn({ error: error.message }, 'the folder of a supervisor could not be removed; the next start tries again'),
    );
  };

  return {
    cacheSocket: path.join(supervisorsFolder(stateRoot), 'cache'),
    runtimesInUse: left.filter(({ lives }) => lives).map(({ record }) => record.runtime),
    left,
    async prepare({ program, traces, runtime, preparation }) {
      const folder = path.join(supervisorsFolder(stateRoot), traces.id);
      await mkdir(folder, { mode: 0o700 });
      await writeFile(filesOf(folder).secret, randomBytes(32).toString('hex'), { mode: 0o600 });
      places ??= keepPlaces(() => startSupervisor({ program, label, stateRoot }));
      const place = await places.take(traces.id).catch((error: Error) => {
        remove(folder);
        throw error;
      });
      const { id, process } = place;
      const sandbox = superviseSandbox({ ...place, folder, traces, log });
      live.add(sandbox);
      const leave = async (): Promise<void> => {
        await sandbox.dispose();
        live.delete(sandbox);
        place.leave();
      };
      await sandbox.prepare(preparation, adoptSeconds).catch(async (error: Error) => {
        await leave();
        remove(folder);
        throw error;
      });
      let assigned: { readonly specification: SandboxSpecification; readonly at: number } | undefined;
      const record = ({ specification, at }: NonNullable<typeof assigned>): SupervisorRecord => ({
        boot_id: bootId(),
        supervisor: id,
        process,
        execution: { task_id: specification.taskId, execution_id: specification.executionId },
        ...(specification.assignmentId === undefined ? {} : { assignment_id: specification.assignmentId }),
        limits: specification.limits,
        limited: specification.isLimited,
        ...(specification.network === undefined ? {} : { network: specification.network }),
        spawn_ms: Math.round((performance.now() - at) * 10) / 10,
        workspace: sandbox.workspace,
        runtime,
        traces,
      });
      return {
        ...sandbox,
        assign(specification) {
          assigned = { specification, at: performance.now() };
        },
        async spawn(launch) {
          if (assigned === undefined) throw new Error('a sandbox was started without an execution');
          // The record is written before the agent starts, so that the next worker knows of every running agent.
          writeWhole(filesOf(folder).record, record(assigned));
          folders.set(assigned.specification.executionId, folder);
          await sandbox.spawn(launch);
        },
        async dispose() {
          await leave();
          // Removes only the folder of a sandbox without an execution. The record of an execution stays until the service has confirmed
          // the end.
          if (![...folders.values()].includes(folder)) remove(folder);
        },
      };
    },
    forget(executionId) {
      const folder = folders.get(executionId);
      folders.delete(executionId);
      if (folder !== undefined) remove(folder);
    },
    async letGo() {
      for (const sandbox of live) sandbox.letGo();
      await places?.close();
    },
  };
}
