import { connect } from 'node:net';

/**
 * Sends a request to the agent of this sandbox over its socket and returns the answer. Rejects if the socket closes without an
 * answer.
 */
export function askAgent<T>(path: string, request: object): Promise<T> {
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect(path, () => socket.write(`${JSON.stringify(request)}\n`));
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk;
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
