import { makeRuntime } from '../../runtime/runtime.ts';
import type { BackendKind } from '../backend-kind.ts';
import { noneBackend, noneLevel } from './backend.ts';

/** The backend whose agents run as plain processes without protection. */
export const none: BackendKind = {
  probe: async () => ({ ok: true, reasons: [], level: noneLevel }),
  async open({ harnessDir, state, agentEntry, log }) {
    log.warn('RUNYARD_SANDBOX=none: agents run UNPROTECTED, with all rights, files and the network of this user');
    const runtime = await makeRuntime({ stateRoot: state.folder, entry: agentEntry, log });
    return noneBackend({ stateRoot: state.folder, owner: state.owner, runtime, harnessDir, log });
  },
  // Removes nothing: sandboxes of this backend consist only of marked processes and folders, which are removed for all backends together.
  sweep: async () => 0,
};
