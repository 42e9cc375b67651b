import type { DeniedConnection, DeniedConnections } from '@runyard/contract/egress/denied';
import type { DeniedReason } from '@runyard/contract/egress/denied-reasons';
import { maxDeniedShown } from '@runyard/contract/limits';

/**
 * Reports denied connections of one sandbox. A new combination of host, port and reason is reported at once, up to a limit. The counts
 * are reported at the end.
 */
export interface DeniedLog {
  add(host: string, port: number, reason: DeniedReason): void;
  /** Reports the counts if more connections were denied than reported. A second call does nothing. */
  close(): void;
}

/** Makes the log of an execution. The log calls `report` at most `maxDeniedShown` times, and once more when the log is closed. */
export function deniedLog(report: (denied: DeniedConnections) => void): DeniedLog {
  const logged = new Map<string, DeniedConnection>();
  let total = 0;
  let isClosed = false;
  return {
    add(hostText, port, reason) {
      if (isClosed) return;
      total += 1;
      const host = harmless(hostText);
      const key = `${host} ${port} ${reason}`;
      const known = logged.get(key);
      if (known !== undefined) logged.set(key, { ...known, count: known.count + 1 });
      if (known !== undefined || logged.size >= maxDeniedShown) return;
      const connection = { host, port, reason, count: 1 };
      logged.set(key, connection);
      report({ number: logged.size, connections: [connection], total });
    },
    close() {
      if (!isClosed && total > logged.size)
        report({ number: maxDeniedShown + 1, connections: [...logged.values()], total });
      isClosed = true;
    },
  };
}

/** Replaces all characters that are not visible ASCII, and shortens the text, because programs in the sandbox choose this text. */
const harmless = (text: string): string => text.replace(/[^\x21-\x7e]/g, '?').slice(0, 260);
