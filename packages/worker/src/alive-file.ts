import { rmSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Milliseconds between two changes of the file's time. */
const everyMs = 5000;

/**
 * Keeps the file `alive` for probes of container engines and clusters. Its time is at most some seconds old while the event loop of this
 * process moves. Its text is `connected` while the worker has a connection to the service, else `not connected`. Returns a function that
 * stops this and removes the file.
 */
export function keepAliveFile(workerFolder: string, isConnected: () => boolean): () => void {
  const file = path.join(workerFolder, 'alive');
  let written: string | undefined;
  const tell = (): void => {
    const text = isConnected() ? 'connected\n' : 'not connected\n';
    try {
      if (text !== written) writeFileSync(file, text);
      // A new time needs no room, so a full disk does not make the worker look dead.
      else utimesSync(file, new Date(), new Date());
      written = text;
    } catch {
      // The worker continues, because only probes read the file. The next call writes it again.
      written = undefined;
    }
  };
  tell();
  const timer = setInterval(tell, everyMs).unref();
  return (): void => {
    clearInterval(timer);
    rmSync(file, { force: true });
  };
}
