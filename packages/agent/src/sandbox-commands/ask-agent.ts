import { connect } from 'node:net';

/**
 * Sends a request to the agent of this sandbox over its socket and returns the answer. Rejects if the socket closes without an
 * answer. `onProgress` gets the lines about the progress that come before the answer.
 */
export function askAgent<T>(path: string, request: object, onProgress: (line: string) => void = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(path, () => socket.write(`${JSON.stringify(request)}\n`));
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk;
      for (let end = received.indexOf('\n'); end !== -1; end = received.indexOf('\n')) {
        const line: unknown = parse(received.slice(0, end));
        if (!isProgress(line)) return;
        onProgress(line.progress);
        received = received.slice(end + 1);
      }
    });
    socket.on('error', reject);
    socket.on('close', () => {
      try {
        resolve(JSON.parse(received) as T);
      } catch {
        reject(new Error('it closed the connection'));
      }
    });
  });
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const isProgress = (line: unknown): line is { readonly progress: string } =>
  typeof line === 'object' && line !== null && 'progress' in line && typeof line.progress === 'string';
